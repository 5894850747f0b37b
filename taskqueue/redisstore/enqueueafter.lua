-- ARGV: as of enqueue, for tasks of which some wait for others. Nothing is added if one of those is not
-- known, nor before it in ARGV: the answer is a text, the id of the task and that of the other one; if that is
-- before it and another task has its unique key, the key and the id of that, too.
local planned, keys, refused = {}, {}, {} -- what is added; unique key -> id; id -> key and who has it
for i = 2, #ARGV, 4 do
  local id, t = ARGV[i], {}
  if not planned[id] and not hget(P, id) then
    header(t, struct.pack('>I7', now) .. ARGV[i + 1])
    for _, parent in ipairs(t.after or {}) do
      if not planned[parent] and not hget(P, parent) then
        local by = refused[parent]
        if by then return {'refused', id, parent, by[1], by[2]} end
        return {'unknown', id, parent}
      end
    end
    local by = t.key ~= '' and (keys[t.key] or holder(t.key))
    if by then refused[id] = {t.key, by}
    else
      planned[id] = true
      keys[t.key] = id
    end
  end
end
local results = {}
each(ARGV, 2, 4, function(i)
  local verdict, holder = add(ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]))
  results[#results + 1] = holder and {verdict, holder} or verdict
end)
return done(results)
