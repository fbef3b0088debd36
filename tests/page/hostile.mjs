// Strings that would do something if a page took them for more than text. Each sets `planted`, asks
// a server that nobody runs, leaves the page, hides it, or breaks whoever keeps names in an object.

// Where nothing listens: a request to it is noticed by the browser's own log of requests.
const away = 'http://127.0.0.1:9';

const kinds = [
  (n) => `<script>window.planted=${n}</script>`,
  (n) => `</script><script>window.planted=${n}</script>`,
  (n) => `</ScRiPt ><sCrIpT src=${away}/${n}.js></sCrIpT>`,
  (n) => `<!--<script>window.planted=${n}</script>-->`,
  (n) => `<!-- ${n} <script>`,
  (n) => `--!><script>window.planted=${n}</script>`,
  (n) => `]]><script>window.planted=${n}</script><![CDATA[`,
  (n) => `<img src=x onerror="window.planted=${n}">`,
  (n) => `"><img src=${away}/${n} onerror=window.planted=${n}>`,
  (n) => `' onmouseover='window.planted=${n}' x='`,
  (n) => `" autofocus onfocus="window.planted=${n}" x="`,
  (n) => `<svg onload=window.planted=${n}><use href="data:image/svg+xml,${n}"/></svg>`,
  (n) => `<svg><a xlink:href="javascript:window.planted=${n}"><text y=9>${n}</text></a></svg>`,
  (n) => `<svg><animate onbegin=window.planted=${n} attributeName=x dur=1s>`,
  (n) => `<iframe srcdoc="<script>parent.planted=${n}</script>"></iframe>`,
  (n) => `<iframe src="javascript:parent.planted=${n}"></iframe>`,
  (n) => `<object data="data:text/html,<script>parent.planted=${n}</script>"></object>`,
  (n) => `<embed src="${away}/${n}.swf">`,
  (n) => `<link rel=stylesheet href="${away}/${n}.css">`,
  (n) => `<meta http-equiv=refresh content="0;url=${away}/${n}">`,
  (n) => `<base href="${away}/${n}/">`,
  (n) => `<form action="${away}/${n}"><input autofocus onfocus=window.planted=${n}></form>`,
  (n) => `<details open ontoggle=window.planted=${n}><summary>${n}</summary></details>`,
  (n) => `<video><source onerror="window.planted=${n}"></video><audio src=${away}/${n} autoplay>`,
  (n) => `<body onload=window.planted=${n}><marquee onstart=window.planted=${n}>`,
  (n) => `<a href="javascript:window.planted=${n}" ping="${away}/${n}">${n}</a>`,
  (n) => `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=window.planted=${n}&gt;">`,
  (n) => `<noscript><p title="</noscript><img src=x onerror=window.planted=${n}>"></noscript>`,
  (n) => `<template><script>window.planted=${n}</script></template>`,
  (n) => `</style><style>*{display:none!important}</style>${n}`,
  (n) => `}*{background:url(${away}/${n});display:none!important}@import "${away}/${n}";`,
  (n) => `expression(window.planted=${n});-moz-binding:url(${away}/${n})`,
  (n) => `</textarea></title></pre></template></noscript><script>window.planted=${n}</script>`,
  (n) => `javascript:window.planted=${n}`,
  (n) => `JaVaScRiPt\u0000:\twindow.planted=${n}//`,
  (n) => `data:text/html;base64,PHNjcmlwdD5wYXJlbnQucGxhbnRlZD0x${n}`,
  (n) => `${away}/${n}?a=<b>&amp;c`,
  (n) => `file:///etc/passwd#${n}`,
  (n) => `../../../../etc/passwd%00${n}`,
  (n) => `{{constructor.constructor('window.planted=${n}')()}}`,
  (n) => `\${window.planted=${n}} #{window.planted=${n}} <%= window.planted=${n} %>`,
  (n) => `";window.planted=${n};//`,
  (n) => `';window.planted=${n};//\\`,
  (n) => `\`+(window.planted=${n})+\``,
  (n) => `\\u003cscript\\u003ewindow.planted=${n}\\u003c/script\\u003e`,
  (n) => `&lt;script&gt;window.planted=${n}&lt;/script&gt; &#60;img src=x onerror=window.planted=${n}&#62;`,
  (n) => `+ADw-script+AD4-window.planted=${n}+ADw-/script+AD4-`,
  (n) => `\u202e${n} desrever \u2066\u2067isolated\u2069 \u200e\u200f\u061c`,
  (n) => `zero\u200bwidth\u200cjoin\u200d\u2060\ufeff${n}`,
  (n) => `lines\u2028and\u2029paragraphs\u0085${n}\r\nand\rreturns\v\f`,
  (n) => `\u0000\u0001\u0007\u0008\u001b[31m\u001b]8;;${away}/${n}\u0007link\u007f\u009b${n}`,
  (n) => `Z${'\u0300\u0301\u0302\u0317\u0489'.repeat(20)}${n}`,
  (n) => `\u{1f468}\u200d\u{1f469}\u200d\u{1f467}\u{e0041}\u{1d173}\ufffe\uffff\u{10ffff}${n}`,
  (n) => `${'W'.repeat(3000)}${n}`,
  (n) => `${'\t'.repeat(200)}${n}${' '.repeat(500)}.`,
  (n) => `${'<div>'.repeat(300)}${n}`,
  () => '__proto__',
  () => 'constructor',
  () => 'prototype',
  () => 'toString',
  () => 'hasOwnProperty',
  () => '__defineGetter__',
  () => 'valueOf',
  () => 'then',
  () => 'NaN',
  () => '-0',
  (n) => `#e${n}`,
  (n) => `e${n}" data-overlay="${n}`,
  (n) => `%%data%% %%script%% ${n}`,
  () => '',
];

// One after the other, each string another.
export const hostile = () => {
  let n = 0;
  const next = () => {
    n += 1;
    return kinds[n % kinds.length](n);
  };
  return { next, count: () => n };
};

// Text as it is found everywhere.
export const plain = () => {
  let n = 0;
  const words = 'the shelf was counted and nothing was missing but a bolt of the second drawer'.split(' ');
  const next = () => {
    n += 1;
    const length = 3 + ((n * 7919) % 40);
    return Array.from({ length }, (_, i) => words[(n * 31 + i * 17) % words.length]).join(' ') + ` ${n}`;
  };
  return { next, count: () => n };
};
