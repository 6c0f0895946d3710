-- The loads of the benchmark, for wrk: 36-byte keys, JSON bodies.
--   wrk -s bench/keyed.lua URL -- LOAD RUN COUNT BODY SEED
-- RUN and SEED are numbers of the caller's; two runs with one number use the same keys.
--   first      every request has a new key of RUN
--   replay     COUNT keys of run SEED, again and again
--   mixed      the one and the other in turn
--   mismatch   COUNT keys of run SEED with another payload
--   status     GET of what became of COUNT keys of run SEED
--   get        GET of a path that no route protects
-- BODY: bytes of a request's body. Closes with a line "RESULT requests microseconds p50_us p99_us max_us status_errors
-- socket_errors"; answers over 399 are status errors.
local load, run, count, seed, number = "first", 0, 0, 0, 0
local fields = { ["Content-Type"] = "application/json" }
local body

local function key(of_run, n)
    return string.format("%08x-0000-4000-8000-%012x", of_run, n)
end

function init(args)
    load, run, count = args[1], tonumber(args[2]), tonumber(args[3])
    seed = tonumber(args[5])
    local start = '{"item":"tea","amount":' .. (load == "mismatch" and 1251 or 1250) .. ',"note":"'
    body = start .. string.rep("n", math.max(0, tonumber(args[4]) - #start - 2)) .. '"}'
end

local function post(of_run, n)
    fields["Idempotency-Key"] = key(of_run, n)
    return wrk.format("POST", "/orders", fields, body)
end

function request()
    number = number + 1
    if load == "first" then
        return post(run, number)
    elseif load == "mixed" and number % 2 == 0 then
        return post(run, number)
    elseif load == "get" then
        return wrk.format("GET", "/things/1")
    elseif load == "status" then
        return wrk.format("GET", "/_nonbis/v1/command", { ["Idempotency-Key"] = key(seed, number % count + 1) })
    end
    return post(seed, number % count + 1)
end

function done(summary, latency)
    local e = summary.errors
    io.write(string.format("RESULT %d %d %d %d %d %d %d\n", summary.requests, summary.duration, latency:percentile(50),
        latency:percentile(99), latency.max, e.status, e.connect + e.read + e.write + e.timeout))
end
