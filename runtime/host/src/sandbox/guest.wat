;; A connector for the sandbox's tests. `store` of a binding does what the
;; binding's number says; the other calls do as little as they may.
(component
  (type $types-type (instance
    (type $kind-type (enum "config" "auth" "schema" "document" "transient" "internal"))
    (export "error-kind" (type $kind (eq $kind-type)))
    (type $error-type (record
      (field "kind" $kind)
      (field "message" string)
      (field "binding" (option u32))
      (field "key" (option string))
      (field "field" (option string))))
    (export "error" (type (eq $error-type)))))
  (import "tidegate:connector/types@0.1.0" (instance $types (type $types-type)))
  (alias export $types "error" (type $error))

  (import "tidegate:connector/runtime@0.1.0" (instance $runtime
    (type $level-type (enum "error" "warn" "info" "debug" "trace"))
    (export "level" (type $level (eq $level-type)))
    (type $wake-type (enum "elapsed" "shutdown"))
    (export "wake" (type $wake (eq $wake-type)))
    (export "log" (func (param "level" $level) (param "message" string)))
    (export "wait" (func (param "milliseconds" u64) (result $wake)))))

  (import "tidegate:connector/sqlite@0.1.0" (instance $sqlite
    (alias outer 1 $error (type $sqlite-error-type))
    (export "error" (type $sqlite-error (eq $sqlite-error-type)))
    (export "db" (type $db (sub resource)))
    (export "open" (func (param "path" string)
      (result (result (own $db) (error $sqlite-error)))))
    (export "[method]db.query" (func
      (param "self" (borrow $db)) (param "sql" string) (param "row" (list u8))
      (result (result (list u8) (error $sqlite-error)))))))

  (import "wasi:io/poll@0.2.3" (instance $poll
    (export "pollable" (type $pollable (sub resource)))
    (export "[method]pollable.block" (func (param "self" (borrow $pollable))))))
  (alias export $poll "pollable" (type $pollable))
  (import "wasi:clocks/monotonic-clock@0.2.3" (instance $clock
    (alias outer 1 $pollable (type $clock-pollable-type))
    (export "pollable" (type $clock-pollable (eq $clock-pollable-type)))
    (export "subscribe-duration" (func (param "when" u64) (result (own $clock-pollable))))))

  (core module $memory-module
    (memory (export "memory") 1)
    ;; Memory that is never given back: a test makes few calls.
    (global $free (mut i32) (i32.const 4096))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and
        (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at)))
  (core instance $memory (instantiate $memory-module))

  (core func $log (canon lower (func $runtime "log") (memory (core memory $memory "memory"))))
  (core func $wait (canon lower (func $runtime "wait")))
  (core func $open (canon lower (func $sqlite "open")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (core func $query (canon lower (func $sqlite "[method]db.query")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (core func $block (canon lower (func $poll "[method]pollable.block")))
  (core func $subscribe (canon lower (func $clock "subscribe-duration")))
  (core instance $host
    (export "log" (func $log))
    (export "wait" (func $wait))
    (export "open" (func $open))
    (export "query" (func $query))
    (export "block" (func $block))
    (export "subscribe" (func $subscribe)))

  (core module $guest-module
    (import "memory" "memory" (memory 1))
    (import "host" "log" (func $log (param i32 i32 i32)))
    (import "host" "wait" (func $wait (param i64) (result i32)))
    (import "host" "open" (func $open (param i32 i32 i32)))
    (import "host" "query" (func $query (param i32 i32 i32 i32 i32 i32)))
    (import "host" "block" (func $block (param i32)))
    (import "host" "subscribe" (func $subscribe (param i64) (result i32)))

    (data (i32.const 1024) "{}")
    (data (i32.const 1032) "no such row")
    (data (i32.const 1048) "x.db")
    (data (i32.const 1064) "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n")
    (data (i32.const 1200) "{\"configSchema\":{},\"resourceSchema\":{},\"documentationUrl\":\"https://example.com\"}")

    ;; An answer: `ok` with what is at the two arguments, as text or list.
    (func $ok (param $at i32) (param $length i32) (result i32)
      (i32.store (i32.const 512) (i32.const 0))
      (i32.store (i32.const 516) (local.get $at))
      (i32.store (i32.const 520) (local.get $length))
      (i32.const 512))

    (func $spin (loop $again (br $again)))
    (func $recurse (param i32) (result i32)
      (i32.add (call $recurse (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
    ;; Computes for a while and waits for 100 ms, ten times.
    (func $progress (local $turn i32) (local $count i32)
      (loop $again
        (local.set $count (i32.const 0))
        (loop $compute
          (local.set $count (i32.add (local.get $count) (i32.const 1)))
          (br_if $compute (i32.lt_u (local.get $count) (i32.const 1000000))))
        (drop (call $wait (i64.const 100)))
        (local.set $turn (i32.add (local.get $turn) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get $turn) (i32.const 10)))))
    ;; Asks a query that never ends.
    (func $query-for-ever
      (call $open (i32.const 1048) (i32.const 4) (i32.const 256))
      (if (i32.load8_u (i32.const 256)) (then (unreachable)))
      (call $query (i32.load (i32.const 260)) (i32.const 1064) (i32.const 86)
        (i32.const 0) (i32.const 0) (i32.const 320)))
    ;; An error, with the binding and nothing else.
    (func $fail (param $binding i32) (result i32)
      (memory.fill (i32.const 600) (i32.const 0) (i32.const 64))
      (i32.store8 (i32.const 600) (i32.const 1))
      (i32.store8 (i32.const 604) (i32.const 4))
      (i32.store (i32.const 608) (i32.const 1032))
      (i32.store (i32.const 612) (i32.const 11))
      (i32.store8 (i32.const 616) (i32.const 1))
      (i32.store (i32.const 620) (local.get $binding))
      (i32.const 600))

    (func (export "spec") (result i32)
      (i32.store (i32.const 512) (i32.const 1200))
      (i32.store (i32.const 516) (i32.const 80))
      (i32.const 512))
    (func (export "empty-object") (param i32 i32) (result i32)
      (call $ok (i32.const 1024) (i32.const 2)))
    (func (export "load") (param i32 i32 i32) (result i32)
      (call $ok (local.get 1) (local.get 2)))
    (func (export "flush") (param i32) (result i32)
      (call $ok (i32.const 0) (i32.const 0)))
    (func (export "start-commit") (param i32 i32) (result i32)
      (i32.store (i32.const 512) (i32.const 0))
      (i32.store (i32.const 516) (i32.const 0))
      (i32.const 512))
    (func (export "store") (param $binding i32) (param i32 i32) (result i32)
      (block $done
      (block $query
      (block $log-line
      (block $progress
      (block $sleep
      (block $wait
      (block $hoard
      (block $recurse
      (block $fail
      (block $panic
      (block $spin
        (br_table $done $spin $panic $fail $recurse $hoard $wait $sleep $progress $log-line $query
          (local.get $binding)))
        (call $spin) (br $done))
        unreachable)
        (return (call $fail (local.get $binding))))
        (drop (call $recurse (i32.const 0))) (br $done))
        (drop (memory.grow (i32.const 16384))) (br $done))
        (if (call $wait (i64.const 600000)) (then (return (call $fail (local.get $binding)))))
        (br $done))
        (call $block (call $subscribe (i64.const 600000000000))) (br $done))
        (call $progress) (br $done))
        (call $log (i32.const 2) (i32.const 1032) (i32.const 11)) (br $done))
        (call $query-for-ever))
      (call $ok (i32.const 0) (i32.const 0))))
  (core instance $guest (instantiate $guest-module
    (with "memory" (instance $memory))
    (with "host" (instance $host))))

  (func $spec (result string)
    (canon lift (core func $guest "spec") (memory (core memory $memory "memory"))))
  (func $ask (param "request" string) (result (result string (error $error)))
    (canon lift (core func $guest "empty-object")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (func $load (param "binding" u32) (param "keys" (list u8))
    (result (result (list u8) (error $error)))
    (canon lift (core func $guest "load")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (func $flush (param "binding" u32) (result (result (list u8) (error $error)))
    (canon lift (core func $guest "flush")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (func $store (param "binding" u32) (param "batch" (list u8))
    (result (result (error $error)))
    (canon lift (core func $guest "store")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (func $start-commit (param "checkpoint" string)
    (result (result (option string) (error $error)))
    (canon lift (core func $guest "start-commit")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (instance $connector
    (export "spec" (func $spec))
    (export "validate" (func $ask))
    (export "apply" (func $ask))
    (export "open" (func $ask))
    (export "load" (func $load))
    (export "flush" (func $flush))
    (export "store" (func $store))
    (export "start-commit" (func $start-commit))
    (export "acknowledge" (func $ask)))
  (export "tidegate:connector/connector@0.1.0" (instance $connector)))
