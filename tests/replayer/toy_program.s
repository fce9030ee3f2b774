# The program that the toy machine of fake_target.cc seems to run: three
# functions of seven four-byte instructions at 0x401000 + 0x100 * i. gdb only
# reads it (symbols, lines, disassembly); nobody executes it.
        .text
        .globl  _start
_start:
        .macro  toy_thread name
        .balign 0x100
        .globl  \name
        .type   \name, @function
\name:
        .rept   7
        {disp8} nopl 0(%rax)
        .endr
        .size   \name, . - \name
        .endm

        toy_thread toy_0
        toy_thread toy_1
        toy_thread toy_2
        .balign 0x100

        .data
        .globl  counters
        .type   counters, @object
counters:
        .quad   0, 0, 0
        .size   counters, . - counters
        .balign 0x100
        .globl  shared
        .type   shared, @object
shared:
        .quad   0
        .size   shared, . - shared
