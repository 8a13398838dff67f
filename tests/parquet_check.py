"""parquet_check.py SAILOR_TOKENIZE DIRECTORY SEED: compares the tokens of Parquet files that pyarrow writes with those of the same texts
as JSONL, and reads damaged files. A damaged file must give tokens, or exit code 2 and one line."""
import json
import pathlib
import random
import re
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq

tokenize, directory, seed = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
rng = random.Random(seed)
failures = 0


def run(files, out, *options):
    return subprocess.run([tokenize, *map(str, files), '-o', str(directory / out), '--bytes', '-q', *options], capture_output=True,
                          text=True, timeout=60)


def tokens(out, parts=('train', 'validation')):
    return [(directory / out / f'{part}.{end}').read_bytes() for part in parts for end in ('bin', 'idx')]


def texts(count):
    words = ['sea', 'Ärger', '帆船', '😀', '\n', '\t"', 'x' * 300, '']
    return [' '.join(rng.choices(words, k=rng.randrange(12))) for _ in range(count)]


def check(name, right, said=''):
    global failures
    failures += not right
    print(f'{"ok" if right else "FAILED"}: {name}{"" if right else ": " + said}', flush=True)


def compare(name, table, rows, *options, **writing):
    """The tokens of the table are those of rows, the same as JSON."""
    parquet, lines = directory / 'a.parquet', directory / 'a.jsonl'
    pq.write_table(table, parquet, **writing)
    lines.write_text(''.join(json.dumps(row) + '\n' for row in rows), encoding='utf-8')
    ours, theirs = run([parquet], 'parquet', '--validation', '0', *options), run([lines], 'jsonl', '--validation', '0', *options)
    right = ours.returncode == theirs.returncode == 0 and tokens('parquet', ['train']) == tokens('jsonl', ['train'])
    check(name, right, ours.stderr + theirs.stderr)


def text_tables():
    plain = texts(1000)
    rows = [{'text': text} for text in plain]
    for compression in ('none', 'snappy', 'gzip', 'brotli', 'zstd', 'lz4'):
        compare(compression, pa.table({'id': range(1000), 'text': plain}), rows, row_group_size=rng.randrange(1, 400),
                compression=compression)
    compare('large_string', pa.table({'text': pa.array(plain, pa.large_string())}), rows, row_group_size=70)
    compare('string_view', pa.table({'text': pa.array(plain, pa.string_view())}), rows, row_group_size=70)
    compare('dictionary', pa.table({'text': pa.array(plain).dictionary_encode()}), rows, row_group_size=130)
    compare('data pages v2', pa.table({'text': plain}), rows, data_page_version='2.0', use_dictionary=False, data_page_size=1000)
    compare('deltas', pa.table({'text': plain}), rows, use_dictionary=False, column_encoding={'text': 'DELTA_BYTE_ARRAY'})
    compare('another column', pa.table({'text': range(1000), 'body': plain}), [{'body': text} for text in plain], '--column', 'body')
    nulls = [text if rng.random() < 0.7 else None for text in plain]
    compare('nulls', pa.table({'text': pa.array(nulls, pa.string())}), [{'text': text} for text in nulls if text], row_group_size=90)
    nothing = pa.table({'text': pa.array(['a', None, None], pa.string())})
    compare('a row group of nulls', nothing, [{'text': 'a'}], row_group_size=1)


def examples():
    rows = [{'prompt': prompt, 'completion': 'answer ' + answer} for prompt, answer in zip(texts(200), texts(200))]
    compare('examples', pa.Table.from_pylist(rows), rows, '--sft', row_group_size=33)


def parts():
    """Several files in their order; the part for validation begins with a row, and all texts are in one part."""
    plain = texts(600)
    files = []
    for i in range(3):
        files.append(directory / f'part{i}.parquet')
        pq.write_table(pa.table({'text': plain[200 * i:200 * i + 200]}), files[-1], row_group_size=50)
    result = run(files, 'parts', '--validation', '0.2')
    train, _, validation, _ = tokens('parts')
    together = b''.join(bytes([b, 0]) for b in ''.join(plain).encode())
    check('several files', result.returncode == 0 and train + validation == together and 0.1 < len(validation) / len(together) < 0.3,
          result.stderr)


def errors():
    pq.write_table(pa.table({'id': [1], 'tokens': [[1, 2]]}), directory / 'a.parquet')
    for options, expected in [((), 'has no column text (columns: id, tokens); name the column of the text with --column'),
                              (('--column', 'id'), '"id" must be a text, is number'),
                              (('--sft',), 'has no column prompt (columns: id, tokens)')]:
        result = run([directory / 'a.parquet'], 'errors', *options)
        check(f'error {expected}', result.returncode == 2 and expected in result.stderr, result.stderr)
    chats = [{'messages': [{'role': 'user', 'content': 'a question', 'weight': None}, {'role': 'assistant', 'content': 'its answer'}]}] * 3
    pq.write_table(pa.Table.from_pylist(chats), directory / 'chats.parquet')
    (directory / 'chats.jsonl').write_text(''.join(json.dumps(chat) + '\n' for chat in chats))
    results = [run([directory / f'chats.{kind}'], kind, '--sft', '--validation', '0') for kind in ('parquet', 'jsonl')]
    said = [(result.returncode, re.sub(r'.*chats\.(parquet, row 0|jsonl:1)', 'X', result.stderr)) for result in results]
    check('lists of structs', said[0] == said[1] and 'messages' in said[0][1], str(said))
    (directory / 'text.parquet').write_text('a text')
    result = run([directory / 'text.parquet'], 'errors')
    check('no Parquet', result.returncode == 2 and 'is no Parquet file' in result.stderr, result.stderr)


def damaged(count):
    pq.write_table(pa.table({'text': texts(60)}), directory / 'a.parquet', row_group_size=20)
    whole = (directory / 'a.parquet').read_bytes()
    wrong, read = '', 0
    for _ in range(count):
        changed = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(4, len(changed)) if rng.random() < 0.5 else rng.randrange(len(changed) - 900, len(changed))
            changed[at] = rng.randrange(256)
        if rng.random() < 0.1:
            del changed[rng.randrange(4, len(changed)):]
        (directory / 'damaged.parquet').write_bytes(changed)
        result = run([directory / 'damaged.parquet'], 'damaged', '--validation', '0')
        read += result.returncode == 0
        if result.returncode not in (0, 2) or (result.returncode == 2 and len(result.stderr.splitlines()) != 1):
            wrong = f'exit {result.returncode}: {result.stderr}'
            (directory.parent / 'found.parquet').write_bytes(changed)
    check(f'{count} damaged files, {read} of them readable', not wrong, wrong)


print(f'seed {seed}')
text_tables()
examples()
parts()
errors()
damaged(300)
sys.exit(failures > 0)
