"""make.py OUT SEED: random models saved by the transformers package as OUT/MODEL, in one file or several, each with
OUT/MODEL/expected.safetensors: token ids, logits, loss and the gradient of every tensor."""
import os, sys

import torch
from models import run, shapes
from safetensors.torch import save_file

VOCABULARY, POSITIONS = 131, 24
out, seed = sys.argv[1], int(sys.argv[2])
for i, (name, kind, config) in enumerate(shapes(VOCABULARY, hidden=64, layers=3, heads=8, positions=POSITIONS, inner=96, seed=seed)):
    torch.manual_seed(seed + i)
    model = kind(config)
    with torch.no_grad():
        for parameter in model.parameters():  # biases and norms too, which are initialised to constants
            parameter.add_(0.05 * torch.randn_like(parameter))
    ids = torch.randint(VOCABULARY, (3, POSITIONS + 1))
    where = os.path.join(out, name)
    model.save_pretrained(where, max_shard_size='100KB' if i % 2 else '5GB')
    logits, loss, gradients = run(model, ids)  # the model is another from here on
    tensors = {'ids': ids, 'logits': logits.contiguous(), 'loss': loss}
    tensors.update({'gradient.' + tensor: gradient.contiguous() for tensor, gradient in gradients.items()})
    save_file(tensors, os.path.join(where, 'expected.safetensors'))
