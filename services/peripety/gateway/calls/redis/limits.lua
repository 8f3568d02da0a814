-- Shared code of the limit scripts.
-- KEYS: leases of calls in progress, their reservations, and the last minute of each limit.
local SLOT, MINUTE = 500, 60000
local SLOTS_KEPT = 300
local leases, holds = KEYS[1], KEYS[2]
local windows = {requests = KEYS[3], input = KEYS[4], output = KEYS[5], cost = KEYS[6]}

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- Returns the time at which a slot expires.
local function ends(slot)
  return (slot + 1) * SLOT + MINUTE
end

-- Returns the slots of a minute that have not expired, oldest first, and their sum.
local function counting(window)
  local entries, slots, total = redis.call('HGETALL', windows[window]), {}, 0
  for i = 1, #entries, 2 do
    local slot, amount = tonumber(entries[i]), tonumber(entries[i + 1])
    if ends(slot) <= now then
      redis.call('HDEL', windows[window], entries[i])
    else
      slots[#slots + 1] = {slot, amount}
      total = total + amount
    end
  end
  table.sort(slots, function(a, b) return a[1] < b[1] end)
  return slots, total
end

local function add(window, moment, amount)
  redis.call('HINCRBY', windows[window], math.floor(moment / SLOT), amount)
  redis.call('PEXPIRE', windows[window], 2 * MINUTE)
  if redis.call('HLEN', windows[window]) > SLOTS_KEPT then
    counting(window)
  end
end

local function read_hold(text)
  local moment, input, output, cost = string.match(text, '(%d+) (%d+) (%d+) (%d+)')
  return {moment = tonumber(moment), input = tonumber(input), output = output, cost = cost}
end

local function take(number)
  local text = redis.call('HGET', holds, number)
  redis.call('HDEL', holds, number)
  redis.call('ZREM', leases, number)
  return text and read_hold(text)
end

-- The owner of an expired lease is gone. Its reservation may have been used at any time until now.
local function forget_the_dead()
  for _, number in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', now)) do
    local hold = take(number)
    if hold then
      add('output', now, hold.output)
      add('cost', now, hold.cost)
    end
  end
end
