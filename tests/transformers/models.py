"""The models that the scripts of this folder make: small, of every family, with every setting that differs between them. With a seed,
numbers that have no reason to be one or the other (epsilons, bases, windows, factors) are drawn."""
import os
import random

os.environ['HF_HUB_OFFLINE'] = '1'
import torch
import transformers

CONFIG_OF = {'Gemma3': 'Gemma3Text'}  # where it isn't the model's name


def scaling(kind, positions, draw):
    """Rotary embeddings that are scaled: some pairs are and some are not, where the kind distinguishes."""
    known = dict(rope_type=kind, rope_theta=float(draw(2000, 9000)), factor=float(draw(2, 6)))
    if kind == 'llama3':
        known.update(original_max_position_embeddings=positions // 2, low_freq_factor=1.0, high_freq_factor=4.0)
    if kind == 'yarn':
        known.update(original_max_position_embeddings=positions // 2, beta_fast=4.0, beta_slow=0.5)
    return dict(rope_parameters=known)


def shapes(vocabulary, hidden, layers, heads, positions, inner, seed=None):
    """(name, class, config) of every model."""
    numbers = random.Random(seed)

    def draw(low, high):
        return numbers.randint(low, high) if seed is not None else (low + high) // 2

    def epsilon():
        return 10.0**-draw(5, 7)

    gpt2 = dict(vocab_size=vocabulary, n_embd=hidden, n_layer=layers, n_head=heads, n_positions=positions, n_inner=inner)
    opt = dict(vocab_size=vocabulary, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, ffn_dim=inner,
               max_position_embeddings=positions, word_embed_proj_dim=hidden,
               pad_token_id=None)  # else that token's row has no gradient
    neo = dict(vocab_size=vocabulary, hidden_size=hidden, num_layers=layers, num_heads=heads, max_position_embeddings=positions,
               intermediate_size=inner, window_size=positions // 3)
    same = dict(vocab_size=vocabulary, hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers,
                num_attention_heads=heads, max_position_embeddings=positions, pad_token_id=None)
    grouped = dict(same, num_key_value_heads=heads // 2)
    wide = dict(grouped, head_dim=2 * hidden // heads)  # heads that are wider together than the hidden state
    window = dict(sliding_window=draw(2, positions // 2))
    falcon = dict(vocab_size=vocabulary, hidden_size=hidden, ffn_hidden_size=inner, num_hidden_layers=layers,
                  num_attention_heads=heads, max_position_embeddings=positions)
    half = [[['global', 'local'], layers // 2]] + ([[['global'], 1]] if layers % 2 else [])

    def model(name, family, **settings):
        kind = getattr(transformers, family + 'ForCausalLM')
        return name, kind, getattr(transformers, CONFIG_OF.get(family, family) + 'Config')(**settings)

    return [
        ('gpt2', transformers.GPT2LMHeadModel, transformers.GPT2Config(**gpt2)),
        ('gpt2-untied', transformers.GPT2LMHeadModel, transformers.GPT2Config(**gpt2, tie_word_embeddings=False)),
        model('opt', 'OPT', **opt),
        model('gpt-neo', 'GPTNeo', **neo, attention_types=half),
        model('gpt-neo-global', 'GPTNeo', **neo, attention_types=[[['global'], layers]], tie_word_embeddings=False),
        model('llama', 'Llama', **same, rope_theta=5000.0, rms_norm_eps=epsilon()),
        model('llama-grouped', 'Llama', **grouped),
        model('llama-tied', 'Llama', **dict(same, num_key_value_heads=1), tie_word_embeddings=True),
        model('llama-linear', 'Llama', **grouped, **scaling('linear', positions, draw)),
        model('llama-dynamic', 'Llama', **dict(grouped, max_position_embeddings=positions // 2),
              rope_parameters=dict(rope_type='dynamic', rope_theta=4000.0, factor=float(draw(2, 6)))),
        model('llama-llama3', 'Llama', **wide, **scaling('llama3', positions, draw), tie_word_embeddings=True),
        model('llama-yarn', 'Llama', **wide, **scaling('yarn', positions, draw), attention_bias=True, mlp_bias=True),
        model('gpt-neox', 'GPTNeoX', **same, rotary_pct=0.5, rotary_emb_base=5000),
        model('gpt-neox-sequential', 'GPTNeoX', **same, rotary_pct=1.0, use_parallel_residual=False, layer_norm_eps=epsilon(),
              tie_word_embeddings=True),
        model('mistral', 'Mistral', **wide, **window, rope_theta=1e4),
        model('mistral-whole', 'Mistral', **grouped, sliding_window=None, rms_norm_eps=epsilon()),
        model('qwen2', 'Qwen2', **grouped, rope_theta=1e4, tie_word_embeddings=True),
        model('qwen2-window', 'Qwen2', **grouped, **window, use_sliding_window=True, max_window_layers=1,
              **scaling('yarn', positions, draw)),
        model('qwen3', 'Qwen3', **wide, rms_norm_eps=epsilon()),
        model('qwen3-window', 'Qwen3', **dict(grouped, head_dim=hidden // heads), **window, use_sliding_window=True,
              max_window_layers=layers - 1, attention_bias=True, tie_word_embeddings=True),
        model('gemma', 'Gemma', **wide),
        model('gemma2', 'Gemma2', **wide, **window, query_pre_attn_scalar=draw(3, 40), attn_logit_softcapping=float(draw(1, 3)),
              final_logit_softcapping=float(draw(2, 5)), attn_implementation='eager'),
        model('gemma2-untied', 'Gemma2', **dict(grouped, head_dim=hidden // heads), sliding_window=3, query_pre_attn_scalar=9,
              attn_logit_softcapping=None, final_logit_softcapping=None, tie_word_embeddings=False),
        model('gemma3', 'Gemma3', **wide, **window, query_pre_attn_scalar=draw(3, 40), sliding_window_pattern=2),
        model('gemma3-scaled', 'Gemma3', **wide, **window, final_logit_softcapping=4.0,
              rope_parameters=dict(full_attention=dict(rope_type='linear', factor=4.0, rope_theta=8000.0),
                                   sliding_attention=dict(rope_type='default', rope_theta=float(draw(100, 900)))),
              layer_types=['full_attention'] + ['sliding_attention'] * (layers - 1)),
        model('olmo2', 'Olmo2', **grouped, rope_theta=5e3, rms_norm_eps=epsilon()),
        model('phi3', 'Phi3', **grouped, **window, rope_theta=5e3),
        model('phi3-partial', 'Phi3', **same, partial_rotary_factor=0.5, tie_word_embeddings=True),
        model('glm', 'Glm', **wide, rms_norm_eps=epsilon()),
        model('glm-scaled', 'Glm', **dict(wide, head_dim=hidden // heads), attention_bias=False, tie_word_embeddings=True,
              partial_rotary_factor=1.0, **scaling('linear', positions, draw)),
        model('glm4', 'Glm4', **wide, rope_theta=5e3),
        model('granite', 'Granite', **grouped, embedding_multiplier=draw(10, 60) / 5, residual_multiplier=draw(1, 9) / 8,
              attention_multiplier=draw(1, 9) / 16, logits_scaling=float(draw(2, 9)), tie_word_embeddings=True),
        model('granite-biases', 'Granite', **grouped, attention_bias=True, mlp_bias=True),
        model('starcoder2', 'Starcoder2', **grouped, **window, rope_theta=5e3, norm_epsilon=epsilon()),
        model('starcoder2-plain', 'Starcoder2', **grouped, use_bias=False, tie_word_embeddings=False),
        model('falcon', 'Falcon', **falcon, num_kv_heads=heads // 2, new_decoder_architecture=True),
        model('falcon-one-norm', 'Falcon', **falcon, num_kv_heads=heads // 2, new_decoder_architecture=True,
              num_ln_in_parallel_attn=1, tie_word_embeddings=False, rope_theta=5e3),
        model('falcon-first', 'Falcon', **falcon),
    ]


def stored_name(model, tensor):
    """What files call the parameter `tensor` of the model."""
    neox = isinstance(model, transformers.GPTNeoXForCausalLM)
    return 'embed_out.weight' if neox and tensor == 'lm_head.weight' else tensor


def run(model, ids):
    """Logits, mean loss of predicting token i + 1 from the first i, and its gradients by stored tensor, of the same weights in double
    precision: gradients that are zero but for rounding would otherwise compare the rounding."""
    model.double().eval()  # no dropout
    logits = model(ids[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1))
    loss.backward()
    return logits.detach(), loss.detach(), {stored_name(model, name): p.grad for name, p in model.named_parameters()}
