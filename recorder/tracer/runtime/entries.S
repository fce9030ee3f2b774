// Where translated code enters the runtime, and where the runtime goes on in it.
// GS points to the thread's state (../shared_layout.h, ThreadState).
//
// The program's registers are in the CPU when an entry is reached, but for those
// that the entry names; they are brought to the state, and the runtime runs on
// its own stack. Vectors, FS and the program's stack stay as they are: the
// runtime is compiled to use none of them.

#include <asm/prctl.h>
#include <sys/syscall.h>

        .set RAX, 0
        .set RCX, 8
        .set RDX, 16
        .set RSP, 32
        .set RFLAGS, 128
        .set RESUME, 136
        .set RUNTIME_STACK, 144
        .set SELF, 152
        .set SCRATCH, 168
        .set IS_HOLDING, 200
        .set AC_HIGH, 4 // bit 18 of RFLAGS, in its third byte

        .macro SAVE_OTHERS
        movq %rbx, %gs:24
        movq %rsp, %gs:RSP
        movq %rbp, %gs:40
        movq %rsi, %gs:48
        movq %rdi, %gs:56
        movq %r8, %gs:64
        movq %r9, %gs:72
        movq %r10, %gs:80
        movq %r11, %gs:88
        movq %r12, %gs:96
        movq %r13, %gs:104
        movq %r14, %gs:112
        movq %r15, %gs:120
        movq %gs:RUNTIME_STACK, %rsp
        pushfq
        popq %gs:RFLAGS
        cld
        testb $AC_HIGH, %gs:RFLAGS+2
        jz 9f
        pushq $2
        popfq
9:      movq %gs:SELF, %rdi
        .endm

        .macro SAVE_ALL // but RCX
        movq %rax, %gs:RAX
        movq %rdx, %gs:RDX
        SAVE_OTHERS
        .endm

        .section .text.first, "ax", @progbits
// What the recorder knows by its place (../shared_layout.h).
        .globl tracer_start
tracer_start: // kStartAt
        call tracer_on_start
        jmp tracer_resume
        .balign 16
        call tracer_on_join // kJoinAt
        jmp tracer_resume
        .balign 16
        jmp tracer_at_boundary // kLeapAt
        .balign 16
        jmp tracer_interrupted // kInterruptedAt
        .balign 16
        jmp tracer_changed // kChangedAt
        .balign 16
        .globl tracer_end_leap
tracer_end_leap:
        int3
        jmp tracer_at_boundary // kLeapEndsAt
        .balign 16
        jmp tracer_leave // kLeaveAt

        .text
tracer_leave:
        movq %gs:RUNTIME_STACK, %rsp
        movq %gs:SELF, %rdi
        call tracer_on_leave

tracer_interrupted:
        movq %rdi, %rsi
        movq %gs:RUNTIME_STACK, %rsp
        movq %gs:SELF, %rdi
        call tracer_on_interrupted

tracer_changed:
        movq %gs:RUNTIME_STACK, %rsp
        movq %gs:SELF, %rdi
        call tracer_on_changed

// RCX: the edge; the program's is in the state.
        .globl tracer_exit
tracer_exit:
        movq %rcx, %gs:SCRATCH
        SAVE_ALL
        call tracer_on_exit
        jmp tracer_resume

// RDX: less the address that the table has, RCX: the target plus RDX; those of
// the program and its RAX are in the state.
        .globl tracer_miss
tracer_miss:
        notq %rdx
        leaq 1(%rcx, %rdx), %rcx
        movq %rcx, %gs:SCRATCH
        SAVE_OTHERS
        call tracer_on_miss
        jmp tracer_resume

// RCX: where to go on; the program's is in the state.
        .globl tracer_full
tracer_full:
        movq %rcx, %gs:RESUME
        SAVE_ALL
        call tracer_on_full
        jmp tracer_resume

// RCX: where to go on; the program's is in the state.
        .globl tracer_call
tracer_call:
        movq %rcx, %gs:RESUME
        SAVE_ALL
        call tracer_on_call
        jmp tracer_resume

// RCX: where to go on, behind an instruction that reads more than registers and
// memory; the program's is in the state.
        .globl tracer_input
tracer_input:
        movq %rcx, %gs:RESUME
        SAVE_ALL
        call tracer_on_input
        jmp tracer_resume

// RCX: where the address of an instruction is that the recorder steps over; the
// program's is in the state.
        .globl tracer_step
tracer_step:
        movq %rcx, %gs:SCRATCH
        SAVE_ALL
        call tracer_on_step

// RCX: the fragment whose check failed; the program's is in the state.
        .globl tracer_stale
tracer_stale:
        movq %rcx, %gs:SCRATCH
        SAVE_ALL
        call tracer_on_stale
        jmp tracer_resume

// RCX: where the program goes on behind a short block; its RCX is in the state.
        .globl tracer_cut
tracer_cut:
        movq %rcx, %gs:SCRATCH
        SAVE_ALL
        call tracer_on_cut

tracer_resume:
        pushq %gs:RFLAGS
        popfq
        movq %gs:RAX, %rax
        movq %gs:RCX, %rcx
        movq %gs:RDX, %rdx
        movq %gs:24, %rbx
        movq %gs:40, %rbp
        movq %gs:48, %rsi
        movq %gs:56, %rdi
        movq %gs:64, %r8
        movq %gs:72, %r9
        movq %gs:80, %r10
        movq %gs:88, %r11
        movq %gs:96, %r12
        movq %gs:104, %r13
        movq %gs:112, %r14
        movq %gs:120, %r15
        movq %gs:RSP, %rsp
        jmpq *%gs:RESUME

// What the kernel calls for the program's signals, with its frame on the signal
// stack: tracer_on_signal(signal, frame).
        .globl tracer_signal
tracer_signal:
        movq %rsp, %rsi
        pushq $2
        popfq
        subq $8, %rsp
        call tracer_on_signal
        addq $16, %rsp // over the frame's restorer, as a handler's RET
        testb %al, %al
        jz 1f

// The program is at a boundary; its registers are in the state.
        .globl tracer_at_boundary
tracer_at_boundary:
        movq %gs:RUNTIME_STACK, %rsp
        movq %gs:SELF, %rdi
        call tracer_on_boundary
        jmp tracer_resume

// tracer_return(frame)
        .globl tracer_return
tracer_return:
        leaq 8(%rdi), %rsp
1:      movl $SYS_rt_sigreturn, %eax
        syscall

// tracer_go_to_program(registers): nothing below the program's stack is touched
// that it may use.
        .globl tracer_go_to_program
tracer_go_to_program:
        pushq 128(%rdi)
        popfq
        movq 32(%rdi), %rax
        movq 136(%rdi), %rcx
        movq %rcx, -136(%rax)
        movq 8(%rdi), %rcx
        movq 16(%rdi), %rdx
        movq 24(%rdi), %rbx
        movq 40(%rdi), %rbp
        movq 48(%rdi), %rsi
        movq 64(%rdi), %r8
        movq 72(%rdi), %r9
        movq 80(%rdi), %r10
        movq 88(%rdi), %r11
        movq 96(%rdi), %r12
        movq 104(%rdi), %r13
        movq 112(%rdi), %r14
        movq 120(%rdi), %r15
        leaq -136(%rax), %rsp
        movq (%rdi), %rax
        movq 56(%rdi), %rdi
        ret $128

// tracer_make_call(number, arguments): RAX behind the call; less ERESTARTSYS if
// a signal is held. One that comes where that is not looked at any more, and
// the call not made, sends the thread to its end.
        .globl tracer_make_call
tracer_make_call:
        movq %rdi, %rax
        movq %rsi, %r11
        movq (%r11), %rdi
        movq 8(%r11), %rsi
        movq 16(%r11), %rdx
        movq 24(%r11), %r10
        movq 32(%r11), %r8
        movq 40(%r11), %r9
        .globl tracer_make_call_check
tracer_make_call_check:
        cmpq $0, %gs:IS_HOLDING
        jne 1f
        .globl tracer_make_call_insn
tracer_make_call_insn:
        syscall
        .globl tracer_make_call_end
tracer_make_call_end:
        ret
1:      movq $-512, %rax
        ret

// tracer_clone(number, a, b, c, d, e, child): RAX behind the call; in the thread
// that it made, the program goes on.
        .globl tracer_clone
tracer_clone:
        pushq %rbx
        movq 16(%rsp), %rbx
        movq %rdi, %rax
        movq %rsi, %rdi
        movq %rdx, %rsi
        movq %rcx, %rdx
        movq %r8, %r10
        movq %r9, %r8
        syscall
        testq %rax, %rax
        jz 1f
        popq %rbx
        ret
1:      movl $SYS_arch_prctl, %eax
        movl $ARCH_SET_GS, %edi
        movq %rbx, %rsi
        syscall
        movq %rbx, %rdi
        call tracer_on_child
        jmp tracer_resume

// tracer_end_thread(use, ended, place, status, number): with each store a part
// of its memory may be another thread's, the place last: there the use is.
        .globl tracer_end_thread
tracer_end_thread:
        movl %esi, (%rdi)
        movl $0, (%rdx)
        movq %rcx, %rdi
1:      movl %r8d, %eax
        syscall
        jmp 1b

// What the compiler calls.
        .globl memcpy
memcpy:
        movq %rdi, %rax
        movq %rdx, %rcx
        rep movsb
        ret

        .globl memmove
memmove:
        movq %rdi, %rax
        movq %rdx, %rcx
        cmpq %rsi, %rdi
        jbe 1f
        leaq -1(%rdi, %rdx), %rdi // from the last byte on
        leaq -1(%rsi, %rdx), %rsi
        std
        rep movsb
        cld
        ret
1:      rep movsb
        ret

        .globl memset
memset:
        movq %rdi, %r8
        movl %esi, %eax
        movq %rdx, %rcx
        rep stosb
        movq %r8, %rax
        ret

        .section .note.GNU-stack, "", @progbits
