// The move constructor of a message must not throw: a message that was taken always reaches its handler.
// expect: constraint|does not satisfy 'message'
// expect: is_nothrow_move_constructible
#include <coaccel/actor/mailbox.hpp>

struct awkward {
    awkward();
    awkward(awkward&&) noexcept(false);
};

using box = coaccel::mailbox<awkward>;
