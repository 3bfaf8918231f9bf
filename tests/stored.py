"""Samples in folders: shards of Parquet, and what `save_to_disk` writes."""

import json

import pyarrow as pa
import pyarrow.parquet


def parquet(folder, shards, name="train-{:05}-of-00003.parquet", column="text", rows=2):
    """A folder as the hub has it: more columns, and files ordered by name."""
    folder.mkdir(exist_ok=True)
    for k, texts in reversed([*enumerate(shards)]):
        table = pa.table({"id": range(len(texts)), column: texts})
        pyarrow.parquet.write_table(table, folder / name.format(k), row_group_size=rows)
    return folder


def saved(folder, shards, columns=("text",), **state):
    """Streams of Arrow, with more columns of the same, and which of them there are."""
    folder.mkdir(exist_ok=True)
    names = [f"data-{k:05}-of-{len(shards):05}.arrow" for k in range(len(shards))]
    for name, texts in zip(names, shards):
        table = pa.table(dict.fromkeys(columns, texts))
        with (
            pa.OSFile(str(folder / name), "wb") as file,
            pa.ipc.new_stream(file, table.schema) as stream,
        ):
            stream.write_table(table, max_chunksize=2)
    files = [{"filename": name} for name in names]
    state = {"_data_files": files, "_split": None, "_format_type": None} | state
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")
    return folder
