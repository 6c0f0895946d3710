'use strict';
// One row per key: INSERT ... ON CONFLICT DO NOTHING claims it, UPDATE stores the answer; each is a transaction of its own with
// synchronous_commit=on, since the handler must not run before the claim is durable, nor while a connection is held for it.
// Statements are prepared once per connection.
//
//   node postgres.js PG_PORT PG_USER POOL

const { Pool } = require('pg');
const { serve } = require('./server');

const pool = new Pool({
    host: '127.0.0.1',
    port: Number(process.argv[2]),
    user: process.argv[3],
    database: 'postgres',
    max: Number(process.argv[4]),
    idleTimeoutMillis: 0,
});

const CLAIM = {
    name: 'claim',
    text: 'INSERT INTO idempotency (key, fingerprint) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING',
};
const READ = { name: 'read', text: 'SELECT fingerprint, status, headers, body FROM idempotency WHERE key = $1' };
const FINISH = {
    name: 'finish',
    text: 'UPDATE idempotency SET status = $2, headers = $3, body = $4, completed = now() WHERE key = $1',
};
const RELEASE = { name: 'release', text: 'DELETE FROM idempotency WHERE key = $1' };

const TABLE = `CREATE TABLE IF NOT EXISTS idempotency (
    key text PRIMARY KEY,
    fingerprint text NOT NULL,
    status smallint,
    headers text,
    body text,
    created timestamptz NOT NULL DEFAULT now(),
    completed timestamptz
) WITH (fillfactor = 70)`;

async function claim(key, print) {
    const inserted = await pool.query({ ...CLAIM, values: [key, print] });
    if (inserted.rowCount === 1) {
        return null;
    }
    const row = (await pool.query({ ...READ, values: [key] })).rows[0];
    if (row === undefined) {
        return claim(key, print); // released in between
    }
    if (row.status === null) {
        return { running: true, fingerprint: row.fingerprint, answer: null };
    }
    const answer = { status: row.status, headers: JSON.parse(row.headers), body: row.body };
    return { running: false, fingerprint: row.fingerprint, answer };
}

async function main() {
    await pool.query(TABLE);
    await serve({
        claim,
        async finish(key, print, answer) {
            await pool.query({ ...FINISH, values: [key, answer.status, JSON.stringify(answer.headers), answer.body] });
        },
        async release(key) {
            await pool.query({ ...RELEASE, values: [key] });
        },
    });
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
