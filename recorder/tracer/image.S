        .section .rodata
        .balign 4096
        .globl clew_tracer_image
clew_tracer_image:
        .incbin CLEW_TRACER_IMAGE
        .globl clew_tracer_image_end
clew_tracer_image_end:
        .section .note.GNU-stack, "", @progbits
