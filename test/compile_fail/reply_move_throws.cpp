// An answer moves without throwing, so that none is lost on its way.
// expect: constraint|does not satisfy 'reply_type'
// expect: is_nothrow_move_constructible
#include <coaccel/actor/ask.hpp>

struct awkward {
    awkward();
    awkward(awkward&&) noexcept(false);
};

using answer = coaccel::reply_to<awkward>;
