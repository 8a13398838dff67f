"""Mixed multilingual text from a seed, with what tokenizers treat differently: scripts, digits, code, emoji, combining marks, white space,
control characters, special tokens, and bytes that are no UTF-8."""
import random, unicodedata

SCRIPTS = [  # ranges of letters, and how often
    ('a', 'z', 40), ('A', 'Z', 8), ('À', 'ɏ', 6), ('Ͱ', 'Ͽ', 3), ('Ѐ', 'ӿ', 6), ('Ա', 'և', 1), ('א', 'ת', 2), ('؀', 'ۿ', 4), ('ऀ', 'ॿ', 3),
    ('ก', '๛', 2), ('ა', 'ჿ', 1), ('ᄀ', 'ᇿ', 1), ('ぁ', 'ゖ', 4), ('ァ', 'ヺ', 3), ('一', '龥', 8), ('가', '힣', 3), ('𐌰', '𐍊', 1), ('𝐀', '𝟿', 1), ('ﬀ', 'ﬆ', 1),
    ('！', 'ﾟ', 1), ('Ꭰ', 'Ᏽ', 1)]
SPACES = [' ', '  ', '   ', '\n', '\n\n', '\r\n', '\r\n\r\n', '\t', '\u00a0', '\u3000', '\u2028', '\u200b', ' \n ', '\u0085', '\u2003', '\x0b', '\x0c', ' ' * 17]
EMOJI = ['😀', '👩‍👩‍👧‍👦', '🏳️‍🌈', '👍🏽', '🇩🇪', '1️⃣', '❤️', '™', '√', '€', '…', '—', '“', '”', '«', '¿', '、', '。', '（', '〜', '\ufeff', '\u202e', '\u00ad']
PIECES = ["'s", "'S", "'ſ", "'re", "'LL", "’s", "n't", "it's", "I'VE", "'d'd", '0x1F', '3.14159', '1,234,567', '٣٤٥', '२०२६', '½', '²', 'Ⅷ', '①', 'ﷺ', 'ﬁ', 'Å', 'Å', 'İ', 'ß', 'Σ',
          'ΑΣ', 'ǅ', 'K', '<0x0A>', '<unk>', '▁', '▁▁', 'Ġ', 'Ċ', '</w>', '##']
CODE = ['def f(x):\n    return x ** 2  # square\n', 'for (int i = 0; i < n; ++i) {\r\n\ta[i] += b[i];\r\n}\r\n', '{"key": [1, 2.5e-3, null]}', 'https://example.org/a_b?c=d&e=%20f#g',
        'SELECT * FROM t WHERE a != \'b\';', '#include <vector>\n', '$\\frac{1}{2}$', '````\n', '====================', '\t\t\treturn;', 'snake_case camelCase PascalCase']
BROKEN = [b'\xff', b'\xe4\xb8', b'\xf0\x9f\x98', b'\xc0\xaf', b'\xed\xa0\x80', b'\x80\x80', b'\xf5\x80\x80\x80', b'\xe2\x28\xa1']


def assigned(first, last):
    return [c for c in map(chr, range(ord(first), ord(last) + 1)) if unicodedata.category(c) not in ('Cn', 'Cs', 'Co')]


ALPHABETS = [assigned(first, last) for first, last, _ in SCRIPTS]
WEIGHTS = [weight for _, _, weight in SCRIPTS]
EVERYTHING = [c for c in map(chr, range(0x1, 0x20000)) if unicodedata.category(c) not in ('Cn', 'Cs', 'Co')]


def words(rng, count=3000):
    """A vocabulary of words that texts repeat, so that there is something to learn."""
    result = []
    for _ in range(count):
        alphabet = rng.choices(ALPHABETS, WEIGHTS)[0]
        letters = rng.choices(alphabet[:rng.randint(3, 40)] if rng.random() < 0.7 else alphabet, k=rng.randint(1, 9))
        if rng.random() < 0.1:
            letters.insert(rng.randrange(len(letters) + 1), rng.choice(['\u0301', '\u0308', '\u0323', '\u200d', '\ufe0f', '\u093f', '\u064b']))
        result.append(''.join(letters))
    return result


def document(rng, vocabulary, size, extra=()):
    """About `size` bytes; `extra` are texts that must occur."""
    parts, length = [], 0
    while length < size:
        kind = rng.random()
        if kind < 0.72:
            index = min(int(rng.expovariate(1 / 300)), len(vocabulary) - 1)
            part = vocabulary[index]
            part = part.upper() if rng.random() < 0.03 else part.capitalize() if rng.random() < 0.1 else part
            part = part.encode()
        elif kind < 0.80:
            part = str(rng.randrange(10 ** rng.randint(1, 9))).encode()
        elif kind < 0.88:
            part = rng.choice(PIECES).encode()
        elif kind < 0.92:
            part = rng.choice(EMOJI).encode()
        elif kind < 0.94:
            part = rng.choice(CODE).encode()
        elif kind < 0.97:
            part = ''.join(rng.choices(EVERYTHING, k=rng.randint(1, 4))).encode()
        elif kind < 0.98:
            part = rng.choice(BROKEN)
        else:
            part = rng.choice(list(extra) or ['']).encode()
        parts.append(part)
        separator = rng.random()
        if separator < 0.75:
            parts.append(b' ')
        elif separator < 0.85:
            parts.append(rng.choice(SPACES).encode())
        elif separator < 0.92:
            parts.append(rng.choice('.,;:!?-_/()[]{}"\'').encode() + b' ' * rng.randint(0, 1))
        length += len(part) + 1
    return b''.join(parts)
