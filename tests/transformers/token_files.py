"""Reads token files of `sailor tokenize`: pairs STEM.bin and STEM.idx in Megatron's format."""
import struct


def read_index(stem):
    """Lengths of sequences, first sequences of documents and their end, and modes of sequences (0 if there are none)."""
    with open(stem + '.idx', 'rb') as file:
        index = file.read()
    sequences, documents = struct.unpack_from('<QQ', index, 18)
    lengths = struct.unpack_from(f'<{sequences}i', index, 34)
    starts = struct.unpack_from(f'<{documents}q', index, 34 + sequences * 12)
    modes = index[34 + sequences * 12 + documents * 8:] or bytes(sequences)
    return index[17], lengths, starts, modes


def read_documents(stem):
    """The tokens of each document."""
    element, lengths, starts, _ = read_index(stem)
    with open(stem + '.bin', 'rb') as file:
        tokens = memoryview(file.read()).cast('H' if element == 8 else 'i').tolist()
    at = 0
    for first, end in zip(starts, starts[1:]):
        size = sum(lengths[first:end])
        yield tokens[at:at + size]
        at += size


def read_modes(stem):
    """Of each document, the modes of its tokens: 1 is an answer."""
    _, lengths, starts, modes = read_index(stem)
    for first, end in zip(starts, starts[1:]):
        yield [mode for length, mode in zip(lengths[first:end], modes[first:end]) for _ in range(length)]
