'use strict';
// The application of the Node.js peers: what bench/upstream.c is to nonbisd and nginx, called in the same process. Counts
// its executions, so that the benchmark can tell whether a repeat was executed again.
//
//   ANSWER_BYTES=300   size of the JSON that it answers
//   DELAY_MS=0         how long it takes

const bytes = Number(process.env.ANSWER_BYTES || 300);
const delayMs = Number(process.env.DELAY_MS || 0);
const start = '{"order":1,"execution":"0123456789abcdef","item":"tea","note":"';
const body = start + 'x'.repeat(Math.max(0, bytes - start.length - 2)) + '"}';

let executions = 0;

function answer() {
    return {
        status: 201,
        headers: { Location: '/orders/00000001', 'X-Request-Id': '0123456789abcdef0123456789abcdef' },
        body,
    };
}

exports.execute = async function execute(order) {
    executions++;
    if (typeof order !== 'object' || order === null) {
        throw new Error('an order is an object');
    }
    if (delayMs > 0) {
        await new Promise((resolve) => setTimeout(resolve, delayMs));
    }
    return answer();
};

exports.count = () => executions;
