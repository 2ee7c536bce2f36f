#ifndef COACCEL_TEST_SUPPORT_START_OP_HPP
#define COACCEL_TEST_SUPPORT_START_OP_HPP

#include <coaccel/core/backend.hpp>

#include <optional>

namespace test {

/// Prepares and launches an op as the engine does. Nothing: it must be tried again later.
template <class B>
std::optional<coaccel::error_code> try_start(B& b, typename B::stream& s, coaccel::bound_op& o)
{
    using coaccel::readiness;
    if (!o.code)
        if (auto ec = b.find_code(o))
            return ec;
    const auto ready = b.prepare(s, o);
    if (!ready)
        return ready.error();
    if (ready.value() == readiness::pending)
        return std::nullopt;
    return ready.value() == readiness::ready ? b.enqueue(s, o) : coaccel::error_code();
}

/// The same for an op that never waits.
template <class B>
coaccel::error_code start(B& b, typename B::stream& s, coaccel::bound_op& o)
{
    return try_start(b, s, o).value();
}

} // namespace test

#endif
