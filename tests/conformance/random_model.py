"""Writes a model of random weights, half a megabyte, that llama-server loads: it answers nonsense in
the form of a chat. Its window is 8,192 tokens, a byte each. Needs gguf and numpy."""

import sys

import gguf
import numpy as np

random = np.random.default_rng(0)
WIDTH, INNER, LAYERS, HEADS, KEYS = 64, 128, 2, 4, 2


def byte_tokens():
    """One printable character for each byte, as GPT-2 spells them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    spelled = {byte: byte for byte in plain} | {byte: 256 + at for at, byte in enumerate(others)}
    return [chr(spelled[byte]) for byte in range(256)]


tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *byte_tokens()]
w = gguf.GGUFWriter(sys.argv[1], "llama")
w.add_name("random-tiny")
w.add_context_length(8192)
w.add_embedding_length(WIDTH)
w.add_feed_forward_length(INNER)
w.add_block_count(LAYERS)
w.add_head_count(HEADS)
w.add_head_count_kv(KEYS)
w.add_layer_norm_rms_eps(1e-5)
w.add_rope_dimension_count(WIDTH // HEADS)
w.add_vocab_size(len(tokens))
w.add_file_type(0)
w.add_tokenizer_model("gpt2")
w.add_tokenizer_pre("gpt-2")
w.add_token_list(tokens)
w.add_token_types([3, 3, 3] + [1] * 256)
w.add_token_merges(["t h"])
w.add_bos_token_id(1)
w.add_eos_token_id(2)
w.add_pad_token_id(0)
w.add_add_bos_token(False)
w.add_chat_template(
    "{% for m in messages %}"
    "{{'<|im_start|>'+m['role']+'\\n'+(m['content'] or '')+'<|im_end|>\\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{'<|im_start|>assistant\\n'}}{% endif %}"
)


def tensor(name, *shape):
    w.add_tensor(name, (random.standard_normal(shape) * 0.05).astype(np.float32))


def ones(name):
    w.add_tensor(name, np.ones(WIDTH, np.float32))


tensor("token_embd.weight", len(tokens), WIDTH)
tensor("output.weight", len(tokens), WIDTH)
ones("output_norm.weight")
for layer in range(LAYERS):
    block = f"blk.{layer}."
    ones(block + "attn_norm.weight")
    ones(block + "ffn_norm.weight")
    tensor(block + "attn_q.weight", WIDTH, WIDTH)
    tensor(block + "attn_k.weight", WIDTH * KEYS // HEADS, WIDTH)
    tensor(block + "attn_v.weight", WIDTH * KEYS // HEADS, WIDTH)
    tensor(block + "attn_output.weight", WIDTH, WIDTH)
    tensor(block + "ffn_gate.weight", INNER, WIDTH)
    tensor(block + "ffn_up.weight", INNER, WIDTH)
    tensor(block + "ffn_down.weight", WIDTH, INNER)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
