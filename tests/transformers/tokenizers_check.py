"""tokenizers_check.py PROGRAM OUT SEED MEGABYTES [TOKENIZER.json...]: are the tokens of `sailor tokenize` (PROGRAM) those of the tokenizers library
and of SentencePiece, for tokenizers of every kind trained here, or for those given? The text is mixed, of that size. One CSV row each; exit 1 when not."""
import json, os, random, subprocess, sys

import mixed_text
import sentencepiece
from token_files import read_documents
from tokenizer_kinds import kinds, sentencepiece_model
from tokenizers import Tokenizer

program, out, seed, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(float(sys.argv[4]) * 1e6)
rng = random.Random(seed)
words = mixed_text.words(rng)
TRAINING_SIZE, DOCUMENTS = 400_000, 40


def given():
    for path in sys.argv[5:]:
        with open(path) as file:
            yield path, json.load(file)


def first_difference(piece, ours, theirs):
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    texts = [' '.join(repr(piece(token)) for token in tokens[max(0, at - 2):at + 4]) for tokens in (ours, theirs)]
    return f'token {at}: {texts[0]} instead of {texts[1]}'


def compare(name, model, extra, encode, piece, clean=False):
    """`model` is the file with the tokenizer; `encode` gives the library's tokens of texts, `piece` the text of a token. `clean`: all is UTF-8."""
    directory = os.path.dirname(model)
    documents = [mixed_text.document(rng, words, size // DOCUMENTS, extra) for _ in range(DOCUMENTS)]
    if clean:
        documents = [document.decode('utf-8', 'replace').encode() for document in documents]
    files = []
    for i, document in enumerate(documents):
        files.append(os.path.join(directory, f'{i:03}.txt'))
        with open(files[-1], 'wb') as file:
            file.write(document)
    subprocess.run([program, *files, '-o', directory, '--model', model, '--validation', '0', '-q'], check=True, stdout=subprocess.DEVNULL)
    expected = encode([document.decode('utf-8', 'replace') for document in documents])
    ours = list(read_documents(os.path.join(directory, 'train')))
    wrong = [first_difference(piece, a, b) for a, b in zip(ours, expected) if a != b]
    ok = not wrong and len(ours) == len(expected)
    print(f"{name.replace(',', '')},{sum(map(len, documents))},{sum(map(len, expected))},{len(wrong)},{'yes' if ok else 'no'}", flush=True)
    for difference in wrong[:2]:
        print(f'  {difference}', file=sys.stderr)
    return ok


def new_file(name, extension):
    directory = os.path.join(out, ''.join(c if c.isalnum() else '_' for c in name))
    os.makedirs(directory)
    return os.path.join(directory, 'tokenizer' + extension)


def compare_json(name, description):
    path = new_file(name, '.json')
    with open(path, 'w') as file:
        json.dump(description, file, ensure_ascii=False)
    tokenizer = Tokenizer.from_file(path)
    return compare(name, path, [token['content'] for token in description['added_tokens']][:40],
                   lambda texts: [encoding.ids for encoding in tokenizer.encode_batch(texts)], tokenizer.id_to_token)


def compare_sentencepiece(model):
    path = new_file('SentencePiece', '.model')
    with open(path, 'wb') as file:
        file.write(model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return compare('SentencePiece', path, [], lambda texts: [ids + [processor.eos_id()] for ids in processor.encode(texts)], processor.id_to_piece, clean=True)


print('tokenizer,bytes,tokens,documents_that_differ,ok')
training = mixed_text.document(rng, words, TRAINING_SIZE).decode('utf-8', 'replace').splitlines(keepends=True)
ok = [compare_json(name, description) for name, description in (given() if sys.argv[5:] else kinds(training, 3000, seed))]
if not sys.argv[5:]:
    ok.append(compare_sentencepiece(sentencepiece_model(training, 3000)))
sys.exit(not all(ok))
