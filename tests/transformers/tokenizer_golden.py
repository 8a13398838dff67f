"""tokenizer_golden.py OUT: what tests/unit/tokenize holds, made with the tokenizers library: for small tokenizers of every kind
OUT/golden/KIND.json with the tokenizer, texts, and the library's tokens and decoded text of each; and with the sentencepiece package
OUT/golden_sentencepiece."""
import json, os, random, sys

import mixed_text
import sentencepiece
from tokenizer_kinds import charsmap, kinds, sentencepiece_model
from tokenizers import Tokenizer

TEXTS = ["Hello, world! It's 2024; THEY'LL pay 1234567 dollars.", 'naïve café — Å Å ﬁ ½ ² Ⅷ', '帆船は港を出た。 한국어 النص العربي हिन्दी ไทย', "'ſ 'S 'Re can't",
         ' leading, trailing  \n\n\n  and\ttabs \r\n\r\n  ', '👩‍👩‍👧‍👦 👍🏽 🇩🇪 1️⃣', 'a\u0301\u0323e\u0308 İstanbul ΑΣ ǅ', 'def f(x):\n    return x**2  # 0x1F\n', '<s>x</s> <0x0A> ▁ ▁▁a <unk>',
         'one<|im_end|> word  <mask> words \n\n\n     thé THÉ 😀 ', '\x01\x7f\u00ad\u200b\ufeff\u2028x\u3000y', '١٢٣ ४५ 𝟙𝟚 ①', 'ꟲ 𞥎 \U0001fbf8 ؊']
KINDS = ['gpt2', 'llama3', 'qwen2', 'o200k', 'falcon', 'llama2', 'mistral', 'gemma', 't5', 'xglm', 'unigram bytes', 'words', 'prefixes', 'MergedWithPrevious', 'Contiguous',
         'MergedWithNext', 'added bytes', 'added pieces', 'added always']
training = mixed_text.document(random.Random(1), mixed_text.words(random.Random(1), 40), 20000).decode('utf-8', 'replace').splitlines(keepends=True)
for name, description in kinds(training + TEXTS, 420, 1, characters=60, replacements=charsmap('ﬁ\tfi\n½\t1⁄2\n\u3000\t \na\u0301\tá\n')):
    if name.replace(',', '') not in KINDS:
        continue
    tokenizer = Tokenizer.from_str(json.dumps(description))
    cases = [[text, tokenizer.encode(text).ids] for text in TEXTS]
    cases = [[text, ids, tokenizer.decode(ids)] for text, ids in cases]
    path = os.path.join(sys.argv[1], 'golden', name.replace(',', '').replace(' ', '_') + '.json')
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as out:
        json.dump({'tokenizer': description, 'cases': cases}, out, ensure_ascii=False, separators=(',', ':'))
        out.write('\n')

directory = os.path.join(sys.argv[1], 'golden_sentencepiece')
os.makedirs(directory, exist_ok=True)
model = sentencepiece_model(training, 330)
with open(os.path.join(directory, 'tokenizer.model'), 'wb') as out:
    out.write(model)
text, times = 'first line\n  second  line,\twith  spaces \n\n\nthird 😀 帆船\n', 400
ids = sentencepiece.SentencePieceProcessor(model_proto=model).encode(text * times)
with open(os.path.join(directory, 'expected.json'), 'w') as out:
    json.dump({'text': text, 'times': times, 'count': len(ids), 'first': ids[:200]}, out, ensure_ascii=False, separators=(',', ':'))
    out.write('\n')
