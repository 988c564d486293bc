"""tokenizers: train one, in its own threads."""

from tokenizers import Tokenizer, models, pre_tokenizers, trainers


def work():
    tokenizer = Tokenizer(models.BPE(unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=30, special_tokens=["?"], show_progress=False)
    tokenizer.train_from_iterator(["one two three"] * 10, trainer)
    return len(tokenizer.encode("one two").ids) > 0
