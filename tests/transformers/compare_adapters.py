"""compare_adapters.py OUT: does the PEFT library compute with OUT/MODEL and the adapters in OUT/MODEL/adapter, which the trainer wrote,
what the trainer says (logits, loss, gradients of the adapters), and the transformers package the same logits with OUT/MODEL/merged? One CSV
row each; exit 1 when not. All in double precision, but for what the package computes in single precision, such as norms."""
import os, sys

import torch
from models import shapes
from peft import PeftModel
from safetensors.torch import load_file

TOLERANCE = 1e-5


def error(ours, theirs, least=0.0):
    return ((ours - theirs).abs().max() / max(theirs.abs().max().item(), least)).item()


failed = False
for name, kind, _ in shapes(131, 64, 3, 8, 24, 96):
    where = os.path.join(sys.argv[1], name)
    ids = load_file(os.path.join(where, 'expected.safetensors'))['ids']
    ours = load_file(os.path.join(where, 'adapter', 'computed.safetensors'))
    base = kind.from_pretrained(where, dtype=torch.float64)
    model = PeftModel.from_pretrained(base, os.path.join(where, 'adapter'), is_trainable=True).double().eval()
    logits = model(ids[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1))
    loss.backward()
    theirs = {'gradient.' + n.replace('.default.', '.'): p.grad for n, p in model.named_parameters() if p.requires_grad}
    same_names = theirs.keys() == ours.keys() - {'logits', 'loss'}
    largest = max(gradient.abs().max().item() for gradient in theirs.values())
    errors = [error(ours['logits'], logits.detach()), error(ours['loss'], loss.detach())]
    errors.append(max(error(ours[n], theirs[n], 1e-3 * largest) for n in theirs) if same_names else float('inf'))
    merged = kind.from_pretrained(os.path.join(where, 'merged'), dtype=torch.float64).eval()(ids[:, :-1]).logits
    errors.append(error(merged.detach(), logits.detach()))
    ok = same_names and all(e <= TOLERANCE for e in errors)
    failed = failed or not ok
    print(f"{name},{len(theirs)}," + ','.join(f'{e:.2e}' for e in errors) + f",{'yes' if ok else 'no'}")
sys.exit(failed)
