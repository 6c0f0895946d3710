'use strict';
// Fastify around a claim: what the Redis and the PostgreSQL peer have in common. A store has
//   claim(key, fingerprint)           -> null: claimed; else { running, fingerprint, answer }
//   finish(key, fingerprint, answer)  -> when the answer is durable
//   release(key)                      -> after a handler that threw
// Every answer is sent after its record is durable. Prints the port, which the kernel chooses.

const crypto = require('node:crypto');
const fastify = require('fastify');
const handler = require('./handler');

const BODY_MAX = 2 * 1024 * 1024;
const KEEP_ALIVE_MS = 75000;

function fingerprint(request) {
    const hash = crypto.createHash('sha256');
    hash.update(request.method).update(' ').update(request.url).update('\n').update(request.body);
    return hash.digest('base64');
}

function send(reply, answer) {
    reply.code(answer.status).type('application/json').headers(answer.headers);
    return answer.body;
}

function problem(reply, status, title) {
    reply.code(status).type('application/problem+json');
    return JSON.stringify({ status, title });
}

async function runOnce(store, key, print, request, reply) {
    let answer;
    try {
        answer = await handler.execute(JSON.parse(request.body));
    } catch (error) {
        await store.release(key);
        throw error;
    }
    await store.finish(key, print, answer);
    return send(reply, answer);
}

exports.serve = async function serve(store) {
    const app = fastify({ logger: false, bodyLimit: BODY_MAX, keepAliveTimeout: KEEP_ALIVE_MS, exposeHeadRoutes: false });
    app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => done(null, body));
    app.get('/count', async () => String(handler.count()));
    app.post('/orders', async (request, reply) => {
        const key = request.headers['idempotency-key'];
        if (key === undefined || key.length === 0 || key.length > 255) {
            return problem(reply, 400, 'an Idempotency-Key is required');
        }
        const print = fingerprint(request);
        const found = await store.claim(key, print);
        if (found === null) {
            return runOnce(store, key, print, request, reply);
        }
        if (found.fingerprint !== print) {
            return problem(reply, 422, 'this key was used with another payload');
        }
        if (found.running) {
            return problem(reply, 409, 'this command is running');
        }
        reply.header('Idempotent-Replayed', 'true');
        return send(reply, found.answer);
    });
    await app.listen({ host: '127.0.0.1', port: 0, backlog: 1024 });
    console.log(app.server.address().port);
};
