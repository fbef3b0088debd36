//! The shapes of secrets, one a line: what each is called, what a text must hold to be looked at at
//! all, and the pattern.
//!
//! A shape that is known by its first letters takes tails of any length, so that a token that was cut
//! on the way is still known. What only a name beside it gives away is judged again in
//! [`plausible`](super::plausible).

use std::sync::LazyLock;

use regex::Regex;

/// What looks like a secret.
pub(super) struct Shape {
    /// What it is called.
    pub(super) name: &'static str,
    /// A text that holds none of these has none of the shape.
    pub(super) hints: &'static [&'static str],
    /// What is to be asked of a match.
    pub(super) sure: Sure,
    regex: LazyLock<Option<Regex>>,
}

/// How sure a match is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sure {
    /// It is what it looks like.
    Known,
    /// It stands where secrets stand: only what examples say there is left alone.
    Placed,
    /// A name says that it may be one: words and parts of programs are left alone.
    Named,
}

impl Shape {
    /// The compiled pattern: what is secret of a match is its group `s` or `t`, else all of it.
    pub(super) fn regex(&self) -> Option<&Regex> {
        // A pattern is made when the first text asks for it: most texts ask for none.
        LazyLock::force(&self.regex).as_ref()
    }
}

/// The end of a line of a key, and what a listing, a search, a diff or a quotation sets before the
/// next.
const BREAK: &str =
    r#"["',;+ ]{0,3}(?:\s|\\+[nr]){1,4}(?:[^\s"'\\]+[:-][0-9]+[:-] )?[0-9 \t+>|│→:"'-]{0,16}"#;

macro_rules! shapes {
    ($($name:literal [$($hint:literal),+] $kind:ident $pattern:literal;)+) => {
        /// Every shape, in the order in which a text is searched for them.
        pub(super) static SHAPES: [Shape; [$($name),+].len()] = [$(Shape {
            name: $name,
            hints: &[$($hint),+],
            sure: Sure::$kind,
            // A border of a word is one between ASCII characters: any other takes long to find.
            regex: LazyLock::new(|| {
                let pattern = $pattern.replace(r"\b", r"(?-u:\b)");
                Regex::new(&pattern.replace("BREAK", BREAK)).ok()
            }),
        }),+];
    };
}

shapes! {
    // Keys that are written over lines, and what is left of one that lost its first.
    "private key" ["PRIVATE KEY"] Known
        r#"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:[^{}()\[\]<>;$#!]*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:[\s\\nr0-9+>|│→"'-]{0,16}[A-Za-z0-9+/=]{16,})*(?:[\s\\nr]{0,4}[A-Za-z0-9+/=]+\z)?)"#;
    "private key" ["PRIVATE KEY"] Known
        r"(?:\\+[nr])*(?P<s>(?:[A-Za-z0-9+/=]{16,}BREAK)+(?:[A-Za-z0-9+/=]{1,15}BREAK){0,2}-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)";
    "private key" ["PRIVATE KEY"] Known
        r"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----[^{}()\[\]<>;$#!]*?---- END SSH2 ENCRYPTED PRIVATE KEY ----";
    "private key" ["Private-Lines:"] Known r"Private-Lines: [0-9]+(?P<s>(?:\s+[A-Za-z0-9+/=]{4,})+)";
    "age key" ["AGE-SECRET-KEY", "AGE-PLUGIN"] Known r"\bAGE-(?:SECRET-KEY|PLUGIN-[A-Z0-9-]+)-1[A-Z0-9]{8,}";
    // Clouds.
    "AWS secret key" ["AKIA", "ASIA"] Known
        r#"\b(?:AKIA|ASIA)[A-Z2-7]{12,16}["']?[\s,;:|]{1,10}(?:[A-Za-z_ ]*["']?\s?[=:]\s?)?["']?(?P<s>[A-Za-z0-9/+]{40})\b"#;
    "AWS secret key" ["ecret", "ECRET", "ession", "ESSION"] Known
        r#"(?i)\baws_?(?:secret|session)[a-z_]*["']?\s{0,3}[:=]\s{0,3}["']?(?P<s>[A-Za-z0-9/+=]{20,})"#;
    "AWS key id" ["AKIA", "ASIA", "ABIA", "ACCA"] Known r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{12,16}\b";
    "Google key" ["AIza"] Known r"\bAIza[0-9A-Za-z_-]{16,}";
    "Google token" ["ya29."] Known r"\bya29\.[0-9A-Za-z_-]{16,}";
    "Google secret" ["GOCSPX-"] Known r"\bGOCSPX-[0-9A-Za-z_-]{12,}";
    "Google token" ["1//0"] Known r"\b1//0[0-9A-Za-z_-]{30,}";
    "Azure key" ["AccountKey=", "SharedAccessKey=", "SharedSecret"] Known
        r"\b(?:Account|SharedAccess)Key=(?P<s>[A-Za-z0-9+/=]{20,})";
    "Azure signature" ["sig="] Known r"[?&]sig=(?P<s>[A-Za-z0-9%+/=]{20,})";
    "Azure secret" ["Q~"] Known r"\b[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{20,}";
    "DigitalOcean token" ["_v1_"] Known r"\bdo[opr]_v1_[0-9a-f]{16,}";
    "Alibaba key" ["LTAI"] Known r"\bLTAI[A-Za-z0-9]{12,24}\b";
    "Tencent key" ["AKID"] Known r"\bAKID[A-Za-z0-9]{24,}\b";
    "Heroku key" ["HRKU-"] Known r"\bHRKU-[A-Za-z0-9_-]{16,}";
    "Fly token" ["fo1_", "fm1", "fm2_"] Known r"\b(?:fo1_[A-Za-z0-9_-]{20,}|fm[12][a-z]?_[A-Za-z0-9+/=,_-]{20,})";
    "Databricks token" ["dapi"] Known r"\bdapi[0-9a-f]{20,}";
    "Terraform token" [".atlasv1."] Known r"\b[A-Za-z0-9]{10,}\.atlasv1\.[A-Za-z0-9_-]{16,}";
    "Vault token" ["hvs.", "hvb.", "hvr."] Known r"\bhv[sbr]\.[A-Za-z0-9_-]{16,}";
    "Pulumi token" ["pul-"] Known r"\bpul-[0-9a-f]{20,}";
    "Doppler token" ["dp."] Known r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{20,}";
    "Supabase token" ["sbp_", "sb_secret_"] Known r"\b(?:sbp_[0-9a-f]{20,}|sb_secret_[A-Za-z0-9_-]{16,})";
    "PlanetScale token" ["pscale_"] Known r"\bpscale_(?:tkn|pw|oauth|app)_[A-Za-z0-9_.=-]{16,}";
    "Netlify token" ["nfp_"] Known r"\bnfp_[A-Za-z0-9]{20,}";
    "Cloudflare key" ["v1.0-"] Known r"\bv1\.0-[0-9a-f]{24}-[0-9a-f]{40,}";
    "Tailscale key" ["tskey-"] Known r"\btskey-[a-z]+-[A-Za-z0-9-]{12,}";
    // Code and packages.
    "GitHub token" ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"] Known r"\bgh[pousr]_[0-9A-Za-z]{12,}";
    "GitHub token" ["github_pat_"] Known r"\bgithub_pat_[0-9A-Za-z_]{12,}";
    "GitLab token" ["glpat-", "gldt-", "glrt", "glcbt-", "glptt-", "glft-", "glsoat-", "glagent-", "glimt-", "gloas-", "glffct-", "glwt-"] Known r"\bgl(?:pat|dt|rt|rtr|cbt|ptt|ft|soat|agent|imt|oas|ffct|wt)-[0-9A-Za-z_.=-]{12,}";
    "Bitbucket token" ["ATBB"] Known r"\bATBB[A-Za-z0-9_=.-]{20,}";
    "Atlassian token" ["ATATT3", "ATCTT3"] Known r"\bAT[AC]TT3[A-Za-z0-9_=-]{16,}";
    "npm token" ["npm_"] Known r"\bnpm_[A-Za-z0-9]{20,}";
    "PyPI token" ["pypi-Ag"] Known r"\bpypi-Ag[A-Za-z0-9_-]{12,}";
    "RubyGems key" ["rubygems_"] Known r"\brubygems_[0-9a-f]{20,}";
    "crates.io token" ["cio"] Known r"\bcio[A-Za-z0-9]{32}\b";
    "NuGet key" ["oy2"] Known r"\boy2[a-z0-9]{43}\b";
    "Docker token" ["dckr_"] Known r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{12,}";
    "Docker login" ["\"auth\""] Known r#""auth"\s*:\s*"(?P<s>[A-Za-z0-9+/=]{12,})""#;
    "Buildkite token" ["bkua_", "bkat_", "bkpat_"] Known r"\bbk(?:ua|at|pat)_[0-9a-f]{20,}";
    "Sourcegraph token" ["sgp_"] Known r"\bsgp_(?:[a-z0-9]+_)?[0-9a-f]{20,}";
    "Postman key" ["PMAK-"] Known r"\bPMAK-[0-9a-f]{12,}(?:-[0-9a-f]+)?";
    "Sentry token" ["sntry"] Known r"\bsntry[su]_[A-Za-z0-9+/=_-]{16,}";
    // Models.
    "Anthropic key" ["sk-ant-"] Known r"\bsk-ant-[A-Za-z0-9_-]{12,}";
    "OpenRouter key" ["sk-or-"] Known r"\bsk-or-[a-z0-9]+-[A-Za-z0-9]{12,}";
    "OpenAI key" ["sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"] Known
        r"\bsk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{12,}";
    "API key" ["sk-"] Known r"\bsk-[A-Za-z0-9]{20,}";
    "Hugging Face token" ["hf_"] Known r"\bhf_[A-Za-z0-9]{20,}";
    "Hugging Face token" ["api_org_"] Known r"\bapi_org_[A-Za-z0-9]{20,}";
    "Groq key" ["gsk_"] Known r"\bgsk_[A-Za-z0-9]{20,}";
    "xAI key" ["xai-"] Known r"\bxai-[A-Za-z0-9]{20,}";
    "Perplexity key" ["pplx-"] Known r"\bpplx-[A-Za-z0-9]{20,}";
    "Replicate token" ["r8_"] Known r"\br8_[A-Za-z0-9]{20,}";
    // Messages, money, and the rest of the day.
    "Slack token" ["xox", "xapp-"] Known r"\b(?:xox[a-z](?:\.xox[a-z])?|xapp)-[0-9A-Za-z-]{10,}";
    "Slack webhook" ["hooks.slack.com"] Known
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<s>[A-Za-z0-9_/]{12,})";
    "Discord webhook" ["/api/webhooks/"] Known r"/api/webhooks/[0-9]+/(?P<s>[A-Za-z0-9_-]{20,})";
    "Discord token" ["MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"] Known r"\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}";
    "Telegram token" [":AA"] Known r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{20,}";
    "Stripe key" ["k_live_", "k_test_"] Known r"\b[sr]k_(?:live|test)_[0-9A-Za-z]{10,}";
    "webhook secret" ["whsec_"] Known r"\bwhsec_[A-Za-z0-9+/=]{12,}";
    "Square token" ["sq0", "EAAA"] Known r"\b(?:sq0[a-z]{3}-[A-Za-z0-9_-]{16,}|EAAA[A-Za-z0-9_-]{56,})";
    "Shopify token" ["shp"] Known r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{16,}";
    "Twilio key" ["SK"] Known r"\bSK[0-9a-f]{32}\b";
    "SendGrid key" ["SG."] Known r"\bSG\.[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]+)?";
    "Mailgun key" ["key-"] Known r"\bkey-[0-9a-f]{32}\b";
    "Mailchimp key" ["-us"] Known r"\b[0-9a-f]{32}-us[0-9]{1,2}\b";
    "New Relic key" ["NRAK-", "NRJS-", "NRII-", "NRIQ-", "NRRA-"] Known r"\bNR(?:AK|JS|II|IQ|RA)-[A-Za-z0-9_-]{16,}";
    "Grafana token" ["glsa_", "glc_"] Known r"\b(?:glsa_[A-Za-z0-9_]{20,}|glc_[A-Za-z0-9+/=]{20,})";
    "Dynatrace token" ["dt0c01."] Known r"\bdt0c01\.[A-Z0-9]{24}(?:\.[A-Z0-9]+)?";
    "Linear key" ["lin_"] Known r"\blin_(?:api|oauth)_[A-Za-z0-9]{16,}";
    "Notion token" ["ntn_", "secret_"] Known r"\b(?:ntn_[A-Za-z0-9]{30,}|secret_[A-Za-z0-9]{43})\b";
    "Airtable token" ["pat"] Known r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{20,}";
    "Figma token" ["figd_"] Known r"\bfigd_[A-Za-z0-9_-]{20,}";
    "1Password token" ["ops_eyJ"] Known r"\bops_eyJ[A-Za-z0-9_=-]{20,}";
    "X token" ["AAAAAAAAAAAAAAAAAAAAA"] Known r"\bAAAAAAAAAAAAAAAAAAAAA[A-Za-z0-9]*%[A-Za-z0-9%]{20,}";
    // What stands in headers and addresses.
    "token" ["eyJ"] Known r"\beyJ[A-Za-z0-9_-]{8,}\.(?:eyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?|[A-Za-z0-9_-]{0,}(?:\.[A-Za-z0-9_-]{8,}){3})";
    "token" ["eyJ"] Known r"\beyJ(?:hbGci|0eXAi|raWQi|jdHki)[A-Za-z0-9_.-]{8,}";
    "credentials" ["uthorization", "UTHORIZATION"] Placed
        r#"(?i)\b(?:proxy-)?authorization\\{0,3}["']?\s{0,3}[:=]\s{0,3}\\{0,3}["']?(?:bearer|basic|token|apikey|negotiate|ntlm|digest|bot|key)\s+(?P<s>[^\s"',;\\\[\]<>{}]{6,})"#;
    "credentials" ["Signature="] Known r"\bSignature=(?P<s>[0-9a-f]{40,})";
    "token" ["earer ", "EARER "] Named r"(?i)\bbearer\s+(?P<s>[A-Za-z0-9._~+/=-]{16,})";
    "cookie" ["ookie:", "OOKIE:"] Named r#"(?i)\b(?:set-)?cookie:\s{0,3}[A-Za-z0-9_.-]+=(?P<s>[^\s;"']{12,})"#;
    "password" ["://"] Placed r#"\b[a-zA-Z][a-zA-Z0-9+.-]+://[^\s/:@"'<>`|\\\[]*:(?:(?P<s>[^\s/@"'<>`|\\]+)@|(?P<t>(?:[0-9]{6,}|[0-9]*[^\s/@"'<>`|\\0-9…][^\s/@"'<>`|\\]*))…)"#;
    "token" ["://"] Placed r"\bhttps?://(?P<s>[A-Za-z0-9_-]{20,})@";
    "password" ["curl"] Placed r#"\bcurl\b[^\n]*?\s(?:-u|--user|--proxy-user)[ =]?["']?[^\s:"']+:(?P<s>[^\s"']{3,})"#;
    // What stands in files.
    "password" ["login"] Placed r"(?i)\blogin\s+\S+\s+password\s+(?P<s>\S{3,})";
    "password" ["password "] Named r"(?m)(?:^|[\t +>|│→-])password[\t ]+(?P<s>\S{6,})[\t ]*$";
    "password" [":543", ":643", ":330", ":*:"] Named r"(?m)(?:^|[\t +>|│→-])(?:[A-Za-z][A-Za-z0-9.-]*|[0-9.]{7,15}|\*):(?:[0-9]{4,5}|\*):[^\s:/]+:[^\s:/]+:(?P<s>\S{4,})$";
    "npm token" ["_auth", "_password"] Placed r#":?\b_(?:authToken|auth|password)["']?\s{0,3}[=:]\s{0,3}["']?(?P<s>[^\s"']{8,})"#;
    "hashed password" ["$2", "$1$", "$5$", "$6$", "$y$", "$argon2"] Known r"\$(?:2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{53}|[156y]\$[^\s:$]+\$[^\s:]{20,}|argon2(?:id|i|d)\$[^\s:]{20,})";
    // What a name beside it gives away.
    "secret" ["ass", "ASS", "Pwd", "pwd", "PWD", "ecret", "ECRET", "oken", "OKEN", "key", "KEY", "Key", "redential", "REDENTIAL"] Named
        r#"(?i)(?:(?:password|passwd|passphrase|pwd|secret|credential|token|api[_.-]?key|access[_.-]?key|secret[_.-]?key|private[_.-]?key|encryption[_.-]?key|signing[_.-]?key|master[_.-]?key|account[_.-]?key|app[_.-]?key|auth[_.-]?key|key[_.-]?base|key[_.-]?id)|\bpass)\\{0,3}["'`]?\s*(?:=>|:=|[:=])\s*(?:[urb]{0,2}\\{0,3}["'`](?P<s>[^"'`\r\n\\]{6,})(?:["'`\\]|$)|(?P<t>[A-Za-z0-9+/_.=~!@#%^&*$?:-]{8,})(?:[\s,;"'`)\\\]}|…]|$))"#;
    "secret" ["--p", "--t", "--s", "--a", "--c"] Named
        r#"(?i)\s--(?:[a-z-]*(?:password|passwd|passphrase|secret|token|api-key|access-key|private-key))[ =]\\{0,3}["']?(?P<s>[^\s"'\\]{6,})"#;
    "password" ["wd=", "wd =", "assword="] Placed r#"(?i)\b(?:password|pwd)\s?=\s?(?P<s>[^\s;"'<>]{4,});"#;
}
