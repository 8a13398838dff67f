"""Times training steps of the same model in PyTorch: eager or compiled, fused AdamW. Prints one CSV row.

The models are those of the families gpt2 (learned positions, LayerNorm, GELU by tanh, biases) and llama (rotary positions,
RMSNorm, gated SiLU, grouped queries), with an untied head and mean cross entropy.
"""
import argparse
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.proj = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.fc1, self.fc2 = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(b, t, d))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))


def rotated(x, cosine, sine):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


class LlamaBlock(nn.Module):
    def __init__(self, hidden, heads, kv_heads, feed_forward):
        super().__init__()
        self.heads, self.kv_heads, self.head = heads, kv_heads, hidden // heads
        self.norm1, self.norm2 = nn.RMSNorm(hidden, eps=1e-5), nn.RMSNorm(hidden, eps=1e-5)
        self.qkv = nn.Linear(hidden, (heads + 2 * kv_heads) * self.head, bias=False)
        self.proj = nn.Linear(hidden, hidden, bias=False)
        self.gate_up, self.down = nn.Linear(hidden, 2 * feed_forward, bias=False), nn.Linear(feed_forward, hidden, bias=False)

    def forward(self, x, cosine, sine):
        b, t, d = x.shape
        split = [self.heads * self.head, self.kv_heads * self.head, self.kv_heads * self.head]
        q, k, v = (y.view(b, t, -1, self.head).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(split, dim=-1))
        mixed = F.scaled_dot_product_attention(rotated(q, cosine, sine), rotated(k, cosine, sine), v, is_causal=True, enable_gqa=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(b, t, d))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, layers, hidden, heads, kv_heads, feed_forward, sequence, vocabulary):
        super().__init__()
        self.token = nn.Embedding(vocabulary, hidden)
        self.blocks = nn.ModuleList(LlamaBlock(hidden, heads, kv_heads, feed_forward) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(hidden, eps=1e-5), nn.Linear(hidden, vocabulary, bias=False)
        size = hidden // heads
        angles = torch.outer(torch.arange(sequence), 10000.0 ** (-torch.arange(0, size, 2) / size))
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())

    def forward(self, ids, targets):
        x = self.token(ids)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


class Gpt2(nn.Module):
    def __init__(self, layers, hidden, heads, sequence, vocabulary):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, hidden), nn.Embedding(sequence, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, vocabulary, bias=False)

    def forward(self, ids, targets):
        x = self.token(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in [("layers", 12), ("hidden", 768), ("heads", 12), ("sequence", 256), ("vocabulary", 50257),
                        ("batch", 4), ("microbatches", 1), ("threads", 2), ("warm-up", 2), ("steps", 5)]:
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--family", default="gpt2", choices=["gpt2", "llama"])
    parser.add_argument("--kv-heads", type=int)
    parser.add_argument("--feed-forward", type=int)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--dtype", default="fp32", choices=["fp32", "autocast", "bf16"],
                        help="autocast: weights in fp32, products in bf16; bf16: all in bf16")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    with torch.device(args.device):
        if args.family == "gpt2":
            model = Gpt2(args.layers, args.hidden, args.heads, args.sequence, args.vocabulary)
        else:
            model = Llama(args.layers, args.hidden, args.heads, args.kv_heads, args.feed_forward, args.sequence, args.vocabulary)
    model.to(torch.bfloat16 if args.dtype == "bf16" else torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, fused=True)
    forward = torch.compile(model) if args.compile else model
    seconds = []
    for step in range(args.warm_up + args.steps):
        batches = [torch.randint(args.vocabulary, (args.batch, args.sequence + 1), device=args.device)
                   for _ in range(args.microbatches)]
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        for ids in batches:
            with torch.autocast(args.device, torch.bfloat16, enabled=args.dtype == "autocast"):
                loss = forward(ids[:, :-1].contiguous(), ids[:, 1:].contiguous()) / args.microbatches
            loss.backward()
        optimizer.step()
        loss.item()
        if step >= args.warm_up:
            seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds)
    print(f"{'compile' if args.compile else 'eager'},{args.threads},{median:.4f},"
          f"{args.batch * args.microbatches * args.sequence / median:.1f}")


main()
