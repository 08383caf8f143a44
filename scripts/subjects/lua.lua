-- Goes through the interpreter, the collector and the standard library: one section, or all. Prints the same on every run.

local only = arg and arg[1]

local function section(name, body)
  if not only or name == only then print(name, pcall(body)) end
end

section("closures", function()
  local function counter()
    local n = 0
    return function() n = n + 1; return n end
  end
  local a, b = counter(), counter()
  a(); a(); b()
  return a(), b()
end)

section("coroutines", function()
  local function permutations(list, n)
    n = n or #list
    if n <= 1 then coroutine.yield(table.concat(list)) end
    for i = 1, n do
      list[n], list[i] = list[i], list[n]
      permutations(list, n - 1)
      list[n], list[i] = list[i], list[n]
    end
  end
  local found = {}
  for word in coroutine.wrap(function() permutations { "a", "b", "c", "d" } end) do found[#found + 1] = word end
  table.sort(found)
  return #found, found[1], found[#found]
end)

section("metatables", function()
  local vector = {}
  vector.__index = vector
  vector.__add = function(u, v) return setmetatable({ u[1] + v[1], u[2] + v[2] }, vector) end
  vector.__eq = function(u, v) return u[1] == v[1] and u[2] == v[2] end
  vector.__close = function(u) u[1] = "closed" end
  local sum = setmetatable({ 1, 2 }, vector) + setmetatable({ 3, 4 }, vector)
  do local scoped <close> = sum end
  return sum[1], sum[2]
end)

section("numbers", function()
  return 7 // 2, -7 // 2, -7 % 3, 2 ^ 10, 1 << 40, 0x7fffffffffffffff + 1, math.tointeger(3.0), 10 / 4, 1e308 * 10
end)

section("strings", function()
  local swapped = ("key=value; other=thing"):gsub("(%w+)=(%w+)", "%2=%1")
  local packed = string.pack("<i4 z d", -42, "text", 0.5)
  return swapped, ("%5.2f|%-8s|%q"):format(3.14159, "left", "a\nb"), #packed, string.unpack("<i4 z d", packed)
end)

section("utf8", function()
  return utf8.len("čaj a káva"), utf8.char(0x1F375), utf8.codepoint("č", 1)
end)

section("load", function()
  local chunk = assert(load("local a, b = ... return a * b + 1"))
  return chunk(6, 7), select("#", load("return +")), string.dump(chunk, true) == string.dump(chunk, true)
end)

section("errors", function()
  local _, failure = pcall(error, { code = 7 })
  return failure.code, error("not caught in here", 0)
end)

section("collector", function()
  local weak = setmetatable({}, { __mode = "v" })
  for i = 1, 1000 do weak[i] = { i } end
  collectgarbage()
  local finalised = 0
  for _ = 1, 10 do setmetatable({}, { __gc = function() finalised = finalised + 1 end }) end
  collectgarbage()
  return #weak, finalised
end)

section("sort", function()
  local list, seed = {}, 12345
  for i = 1, 2000 do
    seed = (seed * 1103515245 + 12345) % 2147483648
    list[i] = seed
  end
  table.sort(list, function(a, b) return a > b end)
  for i = 2, #list do assert(list[i - 1] >= list[i]) end
  return list[1], list[1000], list[2000]
end)

section("files", function()
  local file = assert(io.tmpfile())
  file:write("one\ntwo\n", 3, "\n")
  file:seek("set")
  return file:read("l", "l", "n")
end)
