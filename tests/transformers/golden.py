"""golden.py OUT: what tests/unit/trainer/checkpoint/golden holds, made with the transformers package: OUT/MODEL/config.json as the
package writes it and OUT/MODEL/expected.json. The weights are not stored: element i of a tensor is a sine that the test computes too."""
import json, math, os, sys

import torch
from models import run, shapes, stored_name

POSITIONS = 9


def weight(name, shape):
    count = math.prod(shape)
    phase = sum(name.encode()) % 97
    values = 0.3 * torch.sin(0.37 * torch.arange(1, count + 1, dtype=torch.float64) + phase)
    return (values + (1.0 if len(shape) == 1 and name.endswith('.weight') else 0.0)).reshape(shape).float()


for name, kind, config in shapes(vocabulary=19, hidden=16, layers=2, heads=4, positions=POSITIONS, inner=20):
    if config.max_position_embeddings < POSITIONS:
        continue  # the test's sequences have as many tokens as the model has positions
    model = kind(config)
    with torch.no_grad():
        for tensor, parameter in model.named_parameters():
            parameter.copy_(weight(stored_name(model, tensor), parameter.shape))
    ids = (torch.arange(2 * (POSITIONS + 1)) * 7 % 19).reshape(2, POSITIONS + 1)
    logits, loss, gradients = run(model, ids)
    where = os.path.join(sys.argv[1], name)
    os.makedirs(where, exist_ok=True)
    config.architectures = [kind.__name__]
    config.save_pretrained(where)
    summary = {}
    for tensor, gradient in gradients.items():
        flat = gradient.double().flatten()
        mixed = (flat * torch.cos(0.11 * torch.arange(1, flat.numel() + 1, dtype=torch.float64))).sum()
        summary[tensor] = [float('%.8g' % flat.norm()), float('%.8g' % mixed)]
    with open(os.path.join(where, 'expected.json'), 'w') as out:
        json.dump({'loss': float('%.9g' % loss), 'logits': [float('%.7g' % x) for x in logits.flatten()], 'gradients': summary}, out)
        out.write('\n')
    print(name, 'loss', float(loss))
