"""llama.cpp's own server with a small real model and a template of Qwen: MODEL TEMPLATE. Prints its address; ends with stdin."""

import sys

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.chat_template = open(sys.argv[2], encoding="utf-8").read()
params.use_jinja = True
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = 4096
params.n_parallel = 1
# Threads wait for each other by spinning: with a second one a busy machine is ten times slower.
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.warmup = False
params.verbosity = -1
params.offline = True

server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
