"""Answers POST /payments once per Idempotency-Key, with FastAPI: a middleware asks kdedup before the handler runs."""

import asyncio
import base64
import hashlib
import json
import os
import urllib.error
import urllib.request

import uvicorn
from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool

API, BANK, HOLD = os.environ["API"], os.environ["EFFECT"], float(os.environ.get("HOLD", "30"))
app = FastAPI()


def post(url, body, headers={}):
    headers = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


async def ask(method, key, **more):
    return await run_in_threadpool(post, f"{API}/kdedup.v1.IdempotencyService/{method}",
                                   {"scope": "payments", "key": key, **more})


async def extend(key, held):
    """Keeps the lease while the handler runs. Without it, work that takes longer than HOLD would run twice."""
    while True:
        await asyncio.sleep(HOLD / 3)
        held["lease"] = (await ask("Extend", key, lease=held["lease"]))["lease"]


@app.middleware("http")
async def once(request: Request, handle):
    key = request.headers.get("Idempotency-Key")
    if request.method != "POST" or not key:
        return await handle(request) if request.method != "POST" else Response("Idempotency-Key is missing", 400)
    said = f"{request.method} {request.url.path}\n".encode() + await request.body()
    begun = await ask("Begin", key, hold=f"{HOLD}s", requestHash=base64.b64encode(hashlib.sha256(said).digest()).decode())
    if "conflict" in begun:
        return Response("the key was used with another request", 422)
    if "completed" in begun:
        kept = json.loads(base64.b64decode(begun["completed"]["response"]))
        return Response(kept["body"], kept["status"], media_type="application/json")
    if "acquired" not in begun:
        return Response("another request with this key is under way", 409, {"Retry-After": "1"})
    held = begun["acquired"]
    extending = asyncio.create_task(extend(key, held))
    try:
        response = await handle(request)
        body = b"".join([part async for part in response.body_iterator]).decode()
    except Exception as error:
        await ask("Fail", key, lease=held["lease"], message=str(error))  # the key is free for the next attempt
        raise
    finally:
        extending.cancel()
    if response.status_code >= 500:  # the key is free for the next attempt
        await ask("Fail", key, lease=held["lease"], message=body)
        return Response(body, response.status_code)
    kept = json.dumps({"status": response.status_code, "body": body}).encode()
    await ask("Complete", key, lease=held["lease"], response=base64.b64encode(kept).decode())
    return Response(body, response.status_code, media_type="application/json")


@app.post("/payments", status_code=201)
async def pay(request: Request):
    key = request.headers["Idempotency-Key"]  # handed on: after a crash the payment may come again
    return await run_in_threadpool(post, BANK, await request.json(), {"Idempotency-Key": key})


uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]))
