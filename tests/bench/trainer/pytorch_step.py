"""Times training steps of the same model in PyTorch: eager or compiled, fused AdamW. Prints one CSV row.

The model is what trainer/model/gpt2.h describes: learned positions, pre-norm blocks, GELU (tanh), final norm,
untied head, mean cross entropy.
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
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--dtype", default="fp32", choices=["fp32", "autocast", "bf16"],
                        help="autocast: weights in fp32, products in bf16; bf16: all in bf16")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    model = Gpt2(args.layers, args.hidden, args.heads, args.sequence, args.vocabulary).to(
        args.device, torch.bfloat16 if args.dtype == "bf16" else torch.float32)
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
