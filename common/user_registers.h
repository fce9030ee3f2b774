#ifndef CLEW_COMMON_USER_REGISTERS_H_
#define CLEW_COMMON_USER_REGISTERS_H_

#include <sys/user.h>

#include <array>

namespace clew {

// Where the kernel's register block (sys/user.h, struct user_regs_struct; of
// core dumps and of ptrace) has the general registers, by Gpr.
inline constexpr std::array<unsigned long long user_regs_struct::*, 16>
    kUserGprs = {
        &user_regs_struct::rax, &user_regs_struct::rcx, &user_regs_struct::rdx,
        &user_regs_struct::rbx, &user_regs_struct::rsp, &user_regs_struct::rbp,
        &user_regs_struct::rsi, &user_regs_struct::rdi, &user_regs_struct::r8,
        &user_regs_struct::r9,  &user_regs_struct::r10, &user_regs_struct::r11,
        &user_regs_struct::r12, &user_regs_struct::r13, &user_regs_struct::r14,
        &user_regs_struct::r15};

}  // namespace clew

#endif  // CLEW_COMMON_USER_REGISTERS_H_
