"""The models that both scripts of this folder make: small, of every family, with every setting that differs between them."""
import os

os.environ['HF_HUB_OFFLINE'] = '1'
import torch
from transformers import (GPT2Config, GPT2LMHeadModel, GPTNeoConfig, GPTNeoForCausalLM, GPTNeoXConfig, GPTNeoXForCausalLM, LlamaConfig,
                          LlamaForCausalLM, OPTConfig, OPTForCausalLM)


def shapes(vocabulary, hidden, layers, heads, positions, inner):
    """(name, class, config) of every model."""
    gpt2 = dict(vocab_size=vocabulary, n_embd=hidden, n_layer=layers, n_head=heads, n_positions=positions, n_inner=inner)
    opt = dict(vocab_size=vocabulary, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, ffn_dim=inner,
               max_position_embeddings=positions, word_embed_proj_dim=hidden,
               pad_token_id=None)  # else that token's row has no gradient
    neo = dict(vocab_size=vocabulary, hidden_size=hidden, num_layers=layers, num_heads=heads, max_position_embeddings=positions,
               intermediate_size=inner, window_size=positions // 3)
    llama = dict(vocab_size=vocabulary, hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers,
                 num_attention_heads=heads, max_position_embeddings=positions)
    neox = dict(vocab_size=vocabulary, hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers,
                num_attention_heads=heads, max_position_embeddings=positions)
    half = [[['global', 'local'], layers // 2]] + ([[['global'], 1]] if layers % 2 else [])
    return [
        ('gpt2', GPT2LMHeadModel, GPT2Config(**gpt2)),
        ('gpt2-untied', GPT2LMHeadModel, GPT2Config(**gpt2, tie_word_embeddings=False)),
        ('opt', OPTForCausalLM, OPTConfig(**opt)),
        ('gpt-neo', GPTNeoForCausalLM, GPTNeoConfig(**neo, attention_types=half)),
        ('gpt-neo-global', GPTNeoForCausalLM, GPTNeoConfig(**neo, attention_types=[[['global'], layers]], tie_word_embeddings=False)),
        ('llama', LlamaForCausalLM, LlamaConfig(**llama, rope_theta=5000.0, rms_norm_eps=1e-6)),
        ('llama-grouped', LlamaForCausalLM, LlamaConfig(**llama, num_key_value_heads=heads // 2)),
        ('llama-tied', LlamaForCausalLM, LlamaConfig(**llama, num_key_value_heads=1, tie_word_embeddings=True)),
        ('gpt-neox', GPTNeoXForCausalLM, GPTNeoXConfig(**neox, rotary_pct=0.5, rotary_emb_base=5000)),
        ('gpt-neox-sequential', GPTNeoXForCausalLM, GPTNeoXConfig(**neox, rotary_pct=1.0, use_parallel_residual=False,
                                                                  layer_norm_eps=1e-6, tie_word_embeddings=True)),
    ]


def stored_name(model, tensor):
    """What files call the parameter `tensor` of the model."""
    return 'embed_out.weight' if isinstance(model, GPTNeoXForCausalLM) and tensor == 'lm_head.weight' else tensor


def run(model, ids):
    """Logits, mean loss of predicting token i + 1 from the first i, and its gradients by stored tensor, of the same weights in double
    precision: gradients that are zero but for rounding would otherwise compare the rounding."""
    model.double().eval()  # no dropout
    logits = model(ids[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1))
    loss.backward()
    return logits.detach(), loss.detach(), {stored_name(model, name): p.grad for name, p in model.named_parameters()}
