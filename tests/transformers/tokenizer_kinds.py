"""The kinds of tokenizer.json that published models have: each is trained on a text and has the exact normalizer, pre-tokenizer, model,
post-processor and decoder of its kind."""
import base64, collections, io, json, random, tempfile

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

BYTE_TOKENS = [f'<0x{byte:02X}>' for byte in range(256)]
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace('{1,3}', '')
O200K = '|'.join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
DEEPSEEK = ['\\p{N}{1,3}', '[一-龥\u3040-ゟ゠-ヿ]+',
            '[!"#$%&\'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+']


def split(pattern, behavior='Isolated', invert=False):
    return {'type': 'Split', 'pattern': {'Regex': pattern}, 'behavior': behavior, 'invert': invert}


def sequence(*items, key='pretokenizers'):
    return {'type': 'Sequence', key: list(items)}


def byte_level(use_regex=False, prefix=False):
    return {'type': 'ByteLevel', 'add_prefix_space': prefix, 'trim_offsets': True, 'use_regex': use_regex}


def template(before=(), after=()):
    special = {name: {'id': name, 'ids': [id], 'tokens': [name]} for name, id in (*before, *after)}
    parts = [*({'SpecialToken': {'id': name, 'type_id': 0}} for name, _ in before), {'Sequence': {'id': 'A', 'type_id': 0}},
             *({'SpecialToken': {'id': name, 'type_id': 0}} for name, _ in after)]
    return {'type': 'TemplateProcessing', 'single': parts, 'pair': parts + [{'Sequence': {'id': 'B', 'type_id': 1}}], 'special_tokens': special}


def metaspace(scheme='always', split=True):
    return {'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': scheme, 'split': split}


SPACES_BACK = {'type': 'Replace', 'pattern': {'String': '▁'}, 'content': ' '}
LLAMA_DECODER = sequence(SPACES_BACK, {'type': 'ByteFallback'}, {'type': 'Fuse'}, {'type': 'Strip', 'content': ' ', 'start': 1, 'stop': 0}, key='decoders')
SPACES_TO_MARKS = {'type': 'Replace', 'pattern': {'String': ' '}, 'content': '▁'}


def trained(kind, text, size, model=None, pre=None, normalizer=None, special=('<s>', '</s>'), **options):
    """A tokenizer as JSON, trained with a pre-tokenizer and a normalizer of the library."""
    tokenizer = Tokenizer(model or models.BPE())
    tokenizer.pre_tokenizer = pre
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.train_from_iterator(text, kind(vocab_size=size, special_tokens=list(special), show_progress=False, **options))
    return json.loads(tokenizer.to_str())


def bytes_kind(text, size, pre, **parts):
    """Byte pairs over bytes, trained with the pre-tokenizer itself."""
    trainer = Tokenizer(models.BPE())
    shell = json.loads(trainer.to_str())
    shell['pre_tokenizer'] = pre
    shell['normalizer'] = parts.get('normalizer')
    trainer = Tokenizer.from_str(json.dumps(shell))
    trainer.train_from_iterator(text, trainers.BpeTrainer(vocab_size=size, special_tokens=['<s>', '</s>'], show_progress=False,
                                                          initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    result = json.loads(trainer.to_str())
    result['decoder'] = byte_level(True, True)
    result['post_processor'] = parts.get('post_processor', byte_level(True, True))
    result['model'].update(parts.get('model', {}))
    return result


def pieces_kind(text, size, characters, pre, normalizer=None, decoder=LLAMA_DECODER, post=None, **model):
    """Byte pairs over characters as SentencePiece has them, with tokens for bytes."""
    special = ['<unk>', '<s>', '</s>', *BYTE_TOKENS]
    result = trained(trainers.BpeTrainer, text, size, pre=pre_tokenizers.Metaspace(), special=special, limit_alphabet=characters)
    result['added_tokens'] = [token for token in result['added_tokens'] if token['content'] not in BYTE_TOKENS]
    result.update(pre_tokenizer=pre, normalizer=normalizer, decoder=decoder, post_processor=post)
    result['model'].update(unk_token='<unk>', byte_fallback=True, fuse_unk=True, **model)
    return result


def frequent_only(text, characters):
    """The lines with spaces for all characters but the most frequent ones."""
    frequent = {c for c, _ in collections.Counter(c for line in text for c in line).most_common(characters)}
    return [''.join(c if c in frequent else ' ' for c in line) for line in text]


def unigram_kind(text, size, characters, normalizer, pre, post=None, decoder=None, special=('<pad>', '</s>', '<unk>'), byte_fallback=False):
    special = [*special, *(BYTE_TOKENS if byte_fallback else [])]
    trainer_text = frequent_only(text, characters)  # the trainer takes every character of the text into the vocabulary
    result = trained(trainers.UnigramTrainer, trainer_text, size, model=models.Unigram(), special=special,
                     pre=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]), unk_token='<unk>')
    result['added_tokens'] = [token for token in result['added_tokens'] if token['content'] not in BYTE_TOKENS]
    result.update(normalizer=normalizer, pre_tokenizer=pre, post_processor=post, decoder=decoder or metaspace())
    result['model']['byte_fallback'] = byte_fallback
    return result


def charsmap(rules=None):
    """SentencePiece's replacements of its rule nmt_nfkc, or of lines TEXT<tab>REPLACEMENT, from a model that its package trains."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2
    options = {'normalization_rule_name': 'nmt_nfkc'}
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile('w', suffix='.tsv') as file:
        if rules:
            for line in rules.splitlines():
                file.write('\t'.join(' '.join(f'{ord(c):X}' for c in part) for part in line.split('\t')) + '\n')
            file.flush()
            options = {'normalization_rule_tsv': file.name}
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(['a b c d e f g h'] * 20), model_writer=model, vocab_size=30,
                                                 hard_vocab_limit=False, minloglevel=9, **options)
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    return base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()


def sentencepiece_model(text, size):
    """A model of SentencePiece with the settings of Llama 2. (Of unigram models, releases divide a text with equal scores differently.)"""
    import sentencepiece
    lines = [line for line in frequent_only(text, size // 10) if line.strip()]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, vocab_size=size, hard_vocab_limit=False, minloglevel=9,
                                             model_type='bpe', byte_fallback=True, split_digits=True, normalization_rule_name='identity',
                                             remove_extra_whitespaces=False)
    return model.getvalue()


def add_tokens(tokenizer, rng):
    """More added tokens with every combination of what they may do."""
    have = {token['content'] for token in tokenizer['added_tokens']}
    next_id = max(len(tokenizer['model']['vocab']), *(token['id'] + 1 for token in tokenizer['added_tokens']))
    for content in ['<|im_start|>', '<|im_end|>', '<|im', 'thé', 'İ', 'word', '\n\n\n', '    ', '<mask>', 'ＡＢ', '😀']:
        if content in have or (isinstance(tokenizer['model']['vocab'], dict) and content in tokenizer['model']['vocab']):
            continue
        if isinstance(tokenizer['model']['vocab'], list) and any(content == piece for piece, _ in tokenizer['model']['vocab']):
            continue
        flag = lambda chance: rng.random() < chance
        strips = not content.isspace()  # the library fails where such a token takes spaces
        tokenizer['added_tokens'].append({'id': next_id, 'content': content, 'single_word': flag(.3), 'lstrip': strips and flag(.3),
                                          'rstrip': strips and flag(.3), 'normalized': strips and flag(.4), 'special': flag(.5)})
        next_id += 1
    return tokenizer


def kinds(text, size, seed, characters=400, replacements=None):
    """Yields (name, tokenizer as JSON). `characters` of the text are in vocabularies that are not of bytes; `replacements` is a charsmap."""
    replacements = replacements or charsmap()
    rng = random.Random(seed)
    both = (('<s>', 0),), (('</s>', 1),)
    yield 'gpt2', bytes_kind(text, size, byte_level(True))
    yield 'roberta', bytes_kind(text, size, byte_level(True, True),
                                post_processor={'type': 'RobertaProcessing', 'sep': ['</s>', 1], 'cls': ['<s>', 0], 'trim_offsets': True, 'add_prefix_space': True})
    yield 'llama3', bytes_kind(text, size, sequence(split(LLAMA3), byte_level()), model={'ignore_merges': True},
                               post_processor=sequence(byte_level(True, True), template(both[0]), key='processors'))
    yield 'qwen2', bytes_kind(text, size, sequence(split(QWEN2), byte_level()), normalizer={'type': 'NFC'})
    yield 'o200k', bytes_kind(text, size, sequence(split(O200K, 'Removed', True), byte_level()))
    yield 'deepseek', bytes_kind(text, size, sequence(*map(split, DEEPSEEK), byte_level()), normalizer=sequence(key='normalizers'))
    yield 'falcon', bytes_kind(text, size, sequence({'type': 'Punctuation', 'behavior': 'Contiguous'}, byte_level(True),
                                                    {'type': 'Digits', 'individual_digits': False}, split('[0-9][0-9][0-9]')))
    yield 'starcoder', bytes_kind(text, size, sequence({'type': 'Digits', 'individual_digits': True}, byte_level(True)))
    yield 'llama2', pieces_kind(text, size, characters, None, sequence({'type': 'Prepend', 'prepend': '▁'}, SPACES_TO_MARKS, key='normalizers'),
                                post=template((('<s>', 1),)))
    yield 'mistral', pieces_kind(text, size, characters, metaspace('first', False))
    yield 'gemma', pieces_kind(text, size, characters, {'type': 'Split', 'pattern': {'String': ' '}, 'behavior': 'MergedWithPrevious', 'invert': False}, SPACES_TO_MARKS,
                               decoder=sequence(SPACES_BACK, {'type': 'ByteFallback'}, {'type': 'Fuse'}, key='decoders'))
    yield 't5', unigram_kind(text, size, characters, {'type': 'Precompiled', 'precompiled_charsmap': replacements},
                             sequence({'type': 'WhitespaceSplit'}, metaspace()), template((), (('</s>', 1),)))
    yield 'xglm', unigram_kind(text, size, characters, sequence({'type': 'Precompiled', 'precompiled_charsmap': replacements},
                                                    {'type': 'Replace', 'pattern': {'Regex': ' {2,}'}, 'content': ' '}, key='normalizers'), metaspace('first'))
    yield 'unigram bytes', unigram_kind(text, size, characters, sequence(*({'type': name} for name in ('Nmt', 'NFKD', 'Lowercase')), key='normalizers'),
                                        metaspace('never', False), byte_fallback=True, decoder=LLAMA_DECODER)
    words = trained(trainers.BpeTrainer, text, size, model=models.BPE(unk_token='<unk>', end_of_word_suffix='</w>'), special=['<unk>'], limit_alphabet=characters,
                    pre=pre_tokenizers.Whitespace(), normalizer=normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Strip()]),
                    end_of_word_suffix='</w>')
    yield 'words', words
    yield 'prefixes', trained(trainers.BpeTrainer, text, size, model=models.BPE(unk_token='<unk>', continuing_subword_prefix='##', fuse_unk=True),
                              special=['<unk>'], limit_alphabet=characters, pre=pre_tokenizers.Sequence([pre_tokenizers.CharDelimiterSplit(' '), pre_tokenizers.Punctuation('merged_with_next')]),
                              normalizer=normalizers.NFD(), continuing_subword_prefix='##')
    for behavior in ('MergedWithPrevious', 'Contiguous', 'MergedWithNext', 'Removed'):
        yield behavior, add_tokens(bytes_kind(text, size, sequence(split(r'\p{Lu}|[.,;]+|\n', behavior, rng.random() < 0.5), byte_level(True))), rng)
    yield 'added, bytes', add_tokens(bytes_kind(text, size, sequence(split(LLAMA3), byte_level()), normalizer={'type': 'NFKC'}), rng)
    yield 'added, pieces', add_tokens(pieces_kind(text, size, characters, metaspace('first', True), {'type': 'Lowercase'}), rng)
    yield 'added, always', add_tokens(pieces_kind(text, size, characters, metaspace('always', True), {'type': 'Strip', 'strip_left': True, 'strip_right': True}), rng)
