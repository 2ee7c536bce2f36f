// The move constructor of an answer must not throw, so that no answer is lost on its way.
// expect: constraint|does not satisfy 'reply_type'
// expect: is_nothrow_move_constructible
#include <coaccel/actor/ask.hpp>

struct awkward {
    awkward();
    awkward(awkward&&) noexcept(false);
};

using answer = coaccel::reply_to<awkward>;
