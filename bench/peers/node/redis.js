'use strict';
// The pattern that a team writes by hand: one SET with NX and GET claims a key or tells what is there; a second SET stores the
// answer. Both come back when the append-only file is on the disk (appendfsync always). One connection, on which ioredis puts
// everything of one turn of the event loop together.
//
//   node redis.js REDIS_PORT

const Redis = require('ioredis');
const { serve } = require('./server');

const TTL_S = 24 * 3600;
const PRINT_CHARS = 44; // SHA-256 in base64
const redis = new Redis({ host: '127.0.0.1', port: Number(process.argv[2]), enableAutoPipelining: true });

// "p" or "d", the fingerprint, and behind "d" the answer.
function read(text) {
    const running = text[0] === 'p';
    return {
        running,
        fingerprint: text.slice(1, 1 + PRINT_CHARS),
        answer: running ? null : JSON.parse(text.slice(1 + PRINT_CHARS)),
    };
}

serve({
    async claim(key, print) {
        const found = await redis.set('idempotency:' + key, 'p' + print, 'EX', TTL_S, 'NX', 'GET');
        return found === null ? null : read(found);
    },
    async finish(key, print, answer) {
        await redis.set('idempotency:' + key, 'd' + print + JSON.stringify(answer), 'EX', TTL_S, 'XX');
    },
    async release(key) {
        await redis.del('idempotency:' + key);
    },
}).catch((error) => {
    console.error(error);
    process.exit(1);
});
