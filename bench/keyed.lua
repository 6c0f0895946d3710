-- Keyed orders for wrk: 36-byte keys, 200 bytes of JSON.
--   wrk -s bench/keyed.lua URL -- RUN 0        every request has a new key
--   wrk -s bench/keyed.lua URL -- RUN COUNT    COUNT keys, again and again
-- RUN is a number of the caller's; two runs with one number use the same keys.
local run, count, number = 0, 0, 0
local fields = { ["Content-Type"] = "application/json" }
local body = '{"item":"tea","amount":1250,"note":"' .. string.rep("n", 200 - 38) .. '"}'

function init(args)
    run = tonumber(args[1])
    count = tonumber(args[2])
end

function request()
    number = number + 1
    if count > 0 and number > count then
        number = 1
    end
    fields["Idempotency-Key"] = string.format("%08x-0000-4000-8000-%012x", run, number)
    return wrk.format("POST", "/orders", fields, body)
end
