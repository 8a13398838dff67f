"""tokenizers_check.py PROGRAM OUT SEED MEGABYTES [TOKENIZER.json...]: are the tokens of `sailor tokenize` (PROGRAM) those of the tokenizers library,
for tokenizers of every kind trained here, or for those given? The text is mixed, of that size. One CSV row each; exit 1 when not."""
import json, os, random, struct, subprocess, sys

import mixed_text
from tokenizer_kinds import kinds
from tokenizers import Tokenizer

program, out, seed, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(float(sys.argv[4]) * 1e6)
rng = random.Random(seed)
words = mixed_text.words(rng)
TRAINING_SIZE, DOCUMENTS = 400_000, 40


def given():
    for path in sys.argv[5:]:
        with open(path) as file:
            yield path, json.load(file)


def read_documents(stem):
    """The tokens of each document of a pair STEM.bin and STEM.idx."""
    with open(stem + '.idx', 'rb') as file:
        index = file.read()
    with open(stem + '.bin', 'rb') as file:
        tokens = memoryview(file.read()).cast('H' if index[17] == 8 else 'i').tolist()
    count, = struct.unpack_from('<Q', index, 18)
    at = 0
    for length in struct.unpack_from(f'<{count}i', index, 34):
        yield tokens[at:at + length]
        at += length


def first_difference(tokenizer, ours, theirs):
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    texts = [' '.join(repr(tokenizer.id_to_token(token)) for token in tokens[max(0, at - 2):at + 4]) for tokens in (ours, theirs)]
    return f'token {at}: {texts[0]} instead of {texts[1]}'


def compare(name, description):
    directory = os.path.join(out, ''.join(c if c.isalnum() else '_' for c in name))
    os.makedirs(directory)
    path = os.path.join(directory, 'tokenizer.json')
    with open(path, 'w') as file:
        json.dump(description, file, ensure_ascii=False)
    tokenizer = Tokenizer.from_file(path)
    extra = [token['content'] for token in description['added_tokens']][:40]
    documents = [mixed_text.document(rng, words, size // DOCUMENTS, extra) for _ in range(DOCUMENTS)]
    files = []
    for i, document in enumerate(documents):
        files.append(os.path.join(directory, f'{i:03}.txt'))
        with open(files[-1], 'wb') as file:
            file.write(document)
    subprocess.run([program, *files, '-o', directory, '--model', path, '--validation', '0', '-q'], check=True, stdout=subprocess.DEVNULL)
    expected = [encoding.ids for encoding in tokenizer.encode_batch([document.decode('utf-8', 'replace') for document in documents])]
    ours = list(read_documents(os.path.join(directory, 'train')))
    wrong = [first_difference(tokenizer, a, b) for a, b in zip(ours, expected) if a != b]
    ok = not wrong and len(ours) == len(expected)
    print(f"{name.replace(',', '')},{sum(map(len, documents))},{sum(map(len, expected))},{len(wrong)},{'yes' if ok else 'no'}", flush=True)
    for difference in wrong[:2]:
        print(f'  {difference}', file=sys.stderr)
    return ok


print('tokenizer,bytes,tokens,documents_that_differ,ok')
training = mixed_text.document(rng, words, TRAINING_SIZE).decode('utf-8', 'replace').splitlines(keepends=True)
tokenizers = given() if sys.argv[5:] else kinds(training, 3000, seed)
sys.exit(not all([compare(name, description) for name, description in tokenizers]))
