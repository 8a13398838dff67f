"""compare.py OUT: does every OUT/MODEL/export, which the trainer wrote, load into the transformers package as the same model, and is
what the package then saves byte-identical to what it saved first? One CSV row each; exit 1 when not."""
import glob, os, sys

import torch
from models import shapes
from safetensors.torch import load_file


def tensors(directory):
    found = {}
    for file in glob.glob(os.path.join(directory, 'model*.safetensors')):
        found.update(load_file(file))
    return found


def same(a, b):
    return a.keys() == b.keys() and all(a[n].dtype == b[n].dtype and a[n].shape == b[n].shape and
                                        a[n].numpy().tobytes() == b[n].numpy().tobytes() for n in a)


failed = False
for name, kind, _ in shapes(131, 64, 3, 8, 24, 96):
    where = os.path.join(sys.argv[1], name)
    ids = load_file(os.path.join(where, 'expected.safetensors'))['ids']
    first, info = kind.from_pretrained(where), None
    model, info = kind.from_pretrained(os.path.join(where, 'export'), output_loading_info=True)
    clean = not info['missing_keys'] and not info['unexpected_keys'] and not info['mismatched_keys']
    logits_equal = torch.equal(first.eval()(ids[:, :-1]).logits, model.eval()(ids[:, :-1]).logits)
    model.save_pretrained(os.path.join(where, 'again'))
    before, exported, again = (tensors(os.path.join(where, part)) for part in ('', 'export', 'again'))
    ok = clean and logits_equal and same(before, exported) and same(before, again)
    failed = failed or not ok
    print(f"{name},{len(before)},{'yes' if logits_equal else 'no'},{'yes' if same(before, exported) else 'no'},"
          f"{'yes' if same(before, again) else 'no'},{'yes' if ok else 'no'}")
sys.exit(failed)
