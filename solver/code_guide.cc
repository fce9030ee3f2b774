#include "solver/code_guide.h"

#include <algorithm>
#include <array>
#include <utility>

namespace clew::solver {
namespace {

using Row = std::pair<std::string_view, LockCall>;

// Of glibc, musl and libpthread. C11's mtx_... and C++'s std::mutex call these.
constexpr std::array kRows = {
    Row{"pthread_mutex_lock", LockCall::kLock},
    Row{"pthread_mutex_trylock", LockCall::kLock},
    Row{"pthread_mutex_timedlock", LockCall::kLock},
    Row{"pthread_mutex_clocklock", LockCall::kLock},
    Row{"pthread_mutex_unlock", LockCall::kUnlock},
    Row{"pthread_mutex_unlock_usercnt", LockCall::kUnlock},
    Row{"pthread_spin_lock", LockCall::kLock},
    Row{"pthread_spin_trylock", LockCall::kLock},
    Row{"pthread_spin_unlock", LockCall::kUnlock},
    Row{"pthread_rwlock_rdlock", LockCall::kReadLock},
    Row{"pthread_rwlock_tryrdlock", LockCall::kReadLock},
    Row{"pthread_rwlock_timedrdlock", LockCall::kReadLock},
    Row{"pthread_rwlock_clockrdlock", LockCall::kReadLock},
    Row{"pthread_rwlock_wrlock", LockCall::kWriteLock},
    Row{"pthread_rwlock_trywrlock", LockCall::kWriteLock},
    Row{"pthread_rwlock_timedwrlock", LockCall::kWriteLock},
    Row{"pthread_rwlock_clockwrlock", LockCall::kWriteLock},
    Row{"pthread_rwlock_unlock", LockCall::kReadWriteFree},
    Row{"pthread_cond_wait", LockCall::kWaitCondition},
    Row{"pthread_cond_timedwait", LockCall::kWaitCondition},
    Row{"pthread_cond_clockwait", LockCall::kWaitCondition},
    Row{"pthread_join", LockCall::kJoin},
    Row{"pthread_timedjoin_np", LockCall::kJoin},
    Row{"pthread_clockjoin_np", LockCall::kJoin},
    Row{"pthread_clockjoin_ex", LockCall::kJoin},
};

}  // namespace

LockCall LockCallNamed(std::string_view symbol) {
  symbol.remove_prefix(std::min(symbol.find_first_not_of('_'), symbol.size()));
  const auto* const row = std::ranges::find(kRows, symbol, &Row::first);
  return row == kRows.end() ? LockCall::kNone : row->second;
}

}  // namespace clew::solver
