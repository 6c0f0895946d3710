'use strict';
// Express with @node-idempotency/core and its Redis adapter, wired as its manual does: onRequest before the handler, onResponse
// before the answer. The library reads a repeat in two steps (SET NX, then GET).
//
//   node idempotency.js REDIS_PORT

const express = require('express');
const { Idempotency, IdempotencyErrorCodes } = require('@node-idempotency/core');
const { RedisStorageAdapter } = require('@node-idempotency/storage-adapter-redis');
const handler = require('./handler');

const BODY_MAX = 2 * 1024 * 1024;
const KEEP_ALIVE_MS = 75000;
const STATUS = {
    [IdempotencyErrorCodes.REQUEST_IN_PROGRESS]: 409,
    [IdempotencyErrorCodes.IDEMPOTENCY_FINGERPRINT_MISSMATCH]: 422,
    [IdempotencyErrorCodes.IDEMPOTENCY_KEY_LEN_EXEEDED]: 400,
    [IdempotencyErrorCodes.IDEMPOTENCY_KEY_MISSING]: 400,
};

function send(response, status, headers, body) {
    response.status(status).set(headers).type('application/json').send(body);
}

async function order(idempotency, request, response) {
    const asked = { headers: request.headers, path: request.path, body: request.body, method: request.method };
    const stored = await idempotency.onRequest(asked);
    if (stored !== undefined) {
        response.set('Idempotent-Replayed', 'true');
        return send(response, stored.additional.status, stored.additional.headers, stored.body);
    }
    const answer = await handler.execute(request.body);
    await idempotency.onResponse(asked, {
        body: answer.body,
        additional: { status: answer.status, headers: answer.headers },
    });
    return send(response, answer.status, answer.headers, answer.body);
}

async function main() {
    const storage = new RedisStorageAdapter({ url: 'redis://127.0.0.1:' + process.argv[2] });
    await storage.connect();
    const idempotency = new Idempotency(storage, { enforceIdempotency: true, cacheTTLMS: 24 * 3600 * 1000 });
    const app = express();
    app.disable('x-powered-by');
    app.disable('etag');
    app.use(express.json({ limit: BODY_MAX }));
    app.get('/count', (request, response) => response.type('text/plain').send(String(handler.count())));
    app.post('/orders', async (request, response) => {
        try {
            await order(idempotency, request, response);
        } catch (error) {
            response.status(STATUS[error.code] || 500).json({ title: error.message });
        }
    });
    const server = app.listen(0, '127.0.0.1', 1024, () => console.log(server.address().port));
    server.keepAliveTimeout = KEEP_ALIVE_MS;
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
