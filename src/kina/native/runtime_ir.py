"""The thread pool, as LLVM IR: one call runs a whole program on all threads (SPMD).

The protocol, with every word that threads share in its own cache line:

- **A run** writes the job, then publishes one 64-bit word: the team's size above, a count of runs below. A worker whose
  number is below the size takes part; the others go back to wait. Size and count are read in one
  load, so that a worker which sleeps through a run can never take the next run's job for it.
- **Waiting** (`@wait_while`) spins for a bounded time, then sleeps in a futex. A sleeper first counts itself, then
  the kernel compares the word again; who changes a word does so first, then looks for sleepers. Both in sequentially
  consistent order, so a wake-up is never lost (Dekker's pattern), and costs no system call where all are awake.
- **The barrier** counts arrivals; the last one resets the count and advances the phase the others wait for (a
  sense-reversing barrier, Mellor-Crummey and Scott 1991, with a counter for the sense).
- **One run at a time.** A second caller, or a run inside a run, gets a team of one: results of Kina's kernels
  do not depend on the number of threads.

Workers are detached, block all signals, and are pinned to CPUs of their own; the calling thread is left alone.
"""

from __future__ import annotations

from kina.native.machine import Machine

MAX_CPUS = 1024
SPIN_PAUSES = 2000  # 50-100 us: longer spins disturb others and make a cold wake-up slower

_FUTEX_SYSCALL = {"x86_64": 202, "aarch64": 98}
_PAUSE = {"x86_64": "@llvm.x86.sse2.pause()", "aarch64": "@llvm.aarch64.isb(i32 15)"}
_PAUSE_DECLARATION = {"x86_64": "@llvm.x86.sse2.pause()", "aarch64": "@llvm.aarch64.isb(i32)"}


def has_threads(machine: Machine) -> bool:
    """Whether the pool exists for this target: Linux on x86-64 and 64-bit Arm."""
    return "linux" in machine.triple and machine.architecture in _FUTEX_SYSCALL


def runtime_ir(machine: Machine) -> str:
    """The runtime's module. Elsewhere than on Linux every run has one thread."""
    if not has_threads(machine):
        return _SINGLE + _MEMORY
    values = {
        "$FUTEX": str(_FUTEX_SYSCALL[machine.architecture]),
        "$PAUSE_DECLARATION": _PAUSE_DECLARATION[machine.architecture],
        "$PAUSE": _PAUSE[machine.architecture],
        "$SPIN": str(SPIN_PAUSES),
        "$MAX_CPUS": str(MAX_CPUS),
    }
    text = _POOL + _MEMORY
    for name, value in values.items():
        text = text.replace(name, value)
    return text


_MEMORY = """
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)

; Makes `slot`, an address and a size in bytes, memory of at least `wanted` bytes; what was there is lost. The address
; is 0 where there is no memory.
define void @kina_reserve(ptr %slot, i64 %wanted) {
entry:
  %at = getelementptr i64, ptr %slot, i64 1
  %old = load ptr, ptr %slot
  %have = load i64, ptr %at
  %none = icmp eq ptr %old, null
  %small = icmp slt i64 %have, %wanted
  %take = or i1 %none, %small
  br i1 %take, label %new, label %done
new:
  call void @free(ptr %old)
  %padded = add i64 %wanted, 127
  %size = and i64 %padded, -64
  %memory = call ptr @aligned_alloc(i64 64, i64 %size)
  store ptr %memory, ptr %slot
  store i64 %size, ptr %at
  br label %done
done:
  ret void
}
"""

_SINGLE = """
define void @kina_run(ptr %body, ptr %ctx, i64 %wanted) {
  call void %body(ptr %ctx, i64 0, i64 1)
  ret void
}

define void @kina_barrier(i64 %n) {
  ret void
}

define void @kina_set_cpus(ptr %cpus, i64 %count) {
  ret void
}

define void @kina_after_fork() {
  ret void
}
"""

_POOL = """
declare i64 @syscall(i64, ...)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
declare i32 @sched_getcpu()
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void $PAUSE_DECLARATION

@run_word       = internal global [8 x i64] zeroinitializer, align 64  ; team size << 32 | count of runs
@run_sleepers   = internal global [16 x i32] zeroinitializer, align 64
@unfinished     = internal global [16 x i32] zeroinitializer, align 64 ; workers still in the body
@finish_word    = internal global [16 x i32] zeroinitializer, align 64 ; count of runs that all workers left
@finish_sleepers = internal global [16 x i32] zeroinitializer, align 64
@arrived        = internal global [16 x i32] zeroinitializer, align 64 ; threads at the barrier
@phase_word     = internal global [16 x i32] zeroinitializer, align 64 ; count of barriers passed
@phase_sleepers = internal global [16 x i32] zeroinitializer, align 64
@busy           = internal global [16 x i32] zeroinitializer, align 64 ; 1 while a run has the pool
@job            = internal global { ptr, ptr } zeroinitializer, align 64
@workers        = internal global i64 0                                ; started so far; guarded by @busy
@spin           = internal global i32 $SPIN                            ; pauses before sleep, for this run
@home           = internal global i64 0                                ; the caller's place in @cpus
@cpu_count      = internal global i64 0
@cpus           = internal global [$MAX_CPUS x i32] zeroinitializer

; Runs body(ctx, tid, n) on n threads, tid 0 in the caller. n is `wanted`, or less where threads cannot
; be had; returns when all are through.
define void @kina_run(ptr %body, ptr %ctx, i64 %wanted) {
entry:
  %many = icmp sgt i64 %wanted, 1
  br i1 %many, label %acquire, label %alone
acquire:
  %swap = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %free = extractvalue { i32, i1 } %swap, 1
  br i1 %free, label %gather, label %alone
gather:
  %n = call i64 @team(i64 %wanted)
  %team = icmp sgt i64 %n, 1
  br i1 %team, label %launch, label %release
launch:
  %cpus = load i64, ptr @cpu_count
  %crowded = icmp sgt i64 %n, %cpus            ; spinning would keep the others from running
  %spin = select i1 %crowded, i32 1, i32 $SPIN
  store atomic i32 %spin, ptr @spin monotonic, align 4
  store ptr %body, ptr @job
  store ptr %ctx, ptr getelementptr ({ ptr, ptr }, ptr @job, i64 0, i32 1)
  %others64 = sub i64 %n, 1
  %others = trunc i64 %others64 to i32
  store atomic i32 %others, ptr @unfinished monotonic, align 4
  %finished = load atomic i32, ptr @finish_word monotonic, align 4
  %count = load atomic i32, ptr @run_word monotonic, align 4
  %next = add i32 %count, 1
  %low = zext i32 %next to i64
  %high = shl i64 %n, 32
  %word = or i64 %high, %low
  store atomic i64 %word, ptr @run_word seq_cst, align 8
  call void @wake(ptr @run_word, ptr @run_sleepers)
  call void %body(ptr %ctx, i64 0, i64 %n)
  call void @wait_while(ptr @finish_word, i32 %finished, ptr @finish_sleepers)
  store atomic i32 0, ptr @busy release, align 4
  ret void
release:
  store atomic i32 0, ptr @busy release, align 4
  br label %alone
alone:
  call void %body(ptr %ctx, i64 0, i64 1)
  ret void
}

; All n threads of a run wait for one another. What one wrote before, all see after.
define void @kina_barrier(i64 %n) {
entry:
  %many = icmp sgt i64 %n, 1
  br i1 %many, label %arrive, label %done
arrive:
  %phase = load atomic i32, ptr @phase_word acquire, align 4
  %before = atomicrmw add ptr @arrived, i32 1 acq_rel
  %before64 = zext i32 %before to i64
  %count = add i64 %before64, 1
  %last = icmp eq i64 %count, %n
  br i1 %last, label %open, label %wait
open:
  store atomic i32 0, ptr @arrived monotonic, align 4
  call void @advance(ptr @phase_word, ptr @phase_sleepers)
  ret void
wait:
  call void @wait_while(ptr @phase_word, i32 %phase, ptr @phase_sleepers)
  ret void
done:
  ret void
}

; A worker's life. The argument packs its number (low half) and the count of runs before its first (high half).
define internal ptr @worker(ptr %argument) {
entry:
  %packed = ptrtoint ptr %argument to i64
  %tid = and i64 %packed, 4294967295
  %first64 = lshr i64 %packed, 32
  %first = trunc i64 %first64 to i32
  call void @pin(i64 %tid)
  br label %wait
wait:
  %seen = phi i32 [ %first, %entry ], [ %count, %woken ], [ %count, %work ], [ %count, %last ]
  call void @wait_while(ptr @run_word, i32 %seen, ptr @run_sleepers)
  br label %woken
woken:
  %word = load atomic i64, ptr @run_word acquire, align 8
  %count = trunc i64 %word to i32
  %n = lshr i64 %word, 32
  %mine = icmp ult i64 %tid, %n
  br i1 %mine, label %work, label %wait
work:
  %body = load ptr, ptr @job
  %ctx = load ptr, ptr getelementptr ({ ptr, ptr }, ptr @job, i64 0, i32 1)
  call void %body(ptr %ctx, i64 %tid, i64 %n)
  %left = atomicrmw sub ptr @unfinished, i32 1 acq_rel
  %is_last = icmp eq i32 %left, 1
  br i1 %is_last, label %last, label %wait
last:
  call void @advance(ptr @finish_word, ptr @finish_sleepers)
  br label %wait
}

; Starts workers until a team of `wanted` is there; gives the size of the team there is.
define internal i64 @team(i64 %wanted) {
entry:
  %handle = alloca i64
  %blocked = alloca [16 x i64]
  %mask = alloca [16 x i64]
  %have = load i64, ptr @workers
  %team = add i64 %have, 1
  %enough = icmp sge i64 %team, %wanted
  br i1 %enough, label %given, label %prepare
given:
  ret i64 %wanted
prepare:                                          ; workers inherit a mask that blocks every signal
  call void @llvm.memset.p0.i64(ptr %blocked, i8 -1, i64 128, i1 false)
  %masked = call i32 @pthread_sigmask(i32 2, ptr %blocked, ptr %mask)
  %none = icmp eq i64 %have, 0
  br i1 %none, label %settle, label %loop
settle:
  call void @find_home()
  br label %loop
loop:
  %size = phi i64 [ %team, %prepare ], [ 1, %settle ], [ %larger, %started ]
  %more = icmp slt i64 %size, %wanted
  br i1 %more, label %start, label %end
start:
  %count = load atomic i32, ptr @run_word monotonic, align 4
  %count64 = zext i32 %count to i64
  %high = shl i64 %count64, 32
  %packed = or i64 %high, %size
  %argument = inttoptr i64 %packed to ptr
  %code = call i32 @pthread_create(ptr %handle, ptr null, ptr @worker, ptr %argument)
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %end, label %started
started:
  %thread = load i64, ptr %handle
  %detached = call i32 @pthread_detach(i64 %thread)
  store i64 %size, ptr @workers
  %larger = add i64 %size, 1
  br label %loop
end:
  %unmasked = call i32 @pthread_sigmask(i32 2, ptr %mask, ptr null)
  ret i64 %size
}

; Finds the caller's CPU in @cpus, so that workers are pinned to the ones after it.
define internal void @find_home() {
entry:
  %here = call i32 @sched_getcpu()
  %count = load i64, ptr @cpu_count
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %step ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %absent
look:
  %place = getelementptr i32, ptr @cpus, i64 %i
  %cpu = load i32, ptr %place
  %same = icmp eq i32 %cpu, %here
  br i1 %same, label %found, label %step
step:
  %next = add i64 %i, 1
  br label %loop
found:
  store i64 %i, ptr @home
  ret void
absent:
  store i64 0, ptr @home
  ret void
}

; Pins worker `tid` to the tid-th CPU after the caller's; workers beyond the number of CPUs float.
define internal void @pin(i64 %tid) {
entry:
  %mask = alloca [16 x i64]
  %count = load i64, ptr @cpu_count
  %fits = icmp slt i64 %tid, %count
  br i1 %fits, label %set, label %done
set:
  %home = load i64, ptr @home
  %sum = add i64 %home, %tid
  %index = urem i64 %sum, %count
  %place = getelementptr i32, ptr @cpus, i64 %index
  %cpu = load i32, ptr %place
  %cpu64 = zext i32 %cpu to i64
  %word = lshr i64 %cpu64, 6
  %bit = and i64 %cpu64, 63
  %value = shl i64 1, %bit
  call void @llvm.memset.p0.i64(ptr %mask, i8 0, i64 128, i1 false)
  %slot = getelementptr i64, ptr %mask, i64 %word
  store i64 %value, ptr %slot
  %code = call i32 @sched_setaffinity(i32 0, i64 128, ptr %mask)
  ret void
done:
  ret void
}

; Returns when the 32-bit word is no longer `old`.
define internal void @wait_while(ptr %word, i32 %old, ptr %sleepers) {
entry:
  %limit = load atomic i32, ptr @spin monotonic, align 4
  br label %spin
spin:
  %i = phi i32 [ 0, %entry ], [ %next, %pause ]
  %now = load atomic i32, ptr %word acquire, align 4
  %same = icmp eq i32 %now, %old
  br i1 %same, label %pause, label %done
pause:
  call void $PAUSE
  %next = add i32 %i, 1
  %patient = icmp slt i32 %next, %limit
  br i1 %patient, label %spin, label %doze
doze:
  %counted = atomicrmw add ptr %sleepers, i32 1 seq_cst
  br label %check
check:
  %again = load atomic i32, ptr %word seq_cst, align 4
  %still = icmp eq i32 %again, %old
  br i1 %still, label %sleep, label %leave
sleep:                                            ; 128: FUTEX_WAIT_PRIVATE; returns at once if the word has changed
  %slept = call i64 (i64, ...) @syscall(i64 $FUTEX, ptr %word, i64 128, i32 %old, ptr null, ptr null, i64 0)
  br label %check
leave:
  %uncounted = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  br label %done
done:
  ret void
}

define internal void @advance(ptr %word, ptr %sleepers) {
  %before = atomicrmw add ptr %word, i32 1 seq_cst
  call void @wake(ptr %word, ptr %sleepers)
  ret void
}

define internal void @wake(ptr %word, ptr %sleepers) {
entry:
  %count = load atomic i32, ptr %sleepers seq_cst, align 4
  %any = icmp ne i32 %count, 0
  br i1 %any, label %call, label %done
call:                                             ; 129: FUTEX_WAKE_PRIVATE
  %woken = call i64 (i64, ...) @syscall(i64 $FUTEX, ptr %word, i64 129, i32 2147483647, ptr null, ptr null, i64 0)
  br label %done
done:
  ret void
}

; Tells which CPUs workers may be pinned to. To be called before the first run.
define void @kina_set_cpus(ptr %cpus, i64 %count) {
entry:
  store i64 %count, ptr @cpu_count
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %copy ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %copy, label %done
copy:
  %from = getelementptr i32, ptr %cpus, i64 %i
  %to = getelementptr i32, ptr @cpus, i64 %i
  %cpu = load i32, ptr %from
  store i32 %cpu, ptr %to
  %next = add i64 %i, 1
  br label %loop
done:
  ret void
}

; In a forked child no worker exists, and a run that another thread was in will never end: start anew.
define void @kina_after_fork() {
  store i64 0, ptr @workers
  store i32 0, ptr @run_sleepers
  store i32 0, ptr @finish_sleepers
  store i32 0, ptr @phase_sleepers
  store i32 0, ptr @arrived
  store i32 0, ptr @busy
  ret void
}
"""
