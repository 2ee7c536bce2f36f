#ifndef COACCEL_TEST_UNIT_ACTOR_MAILBOX_SUPPORT_HPP
#define COACCEL_TEST_UNIT_ACTOR_MAILBOX_SUPPORT_HPP

#include "support.hpp"

#include <coaccel/actor/mailbox.hpp>

#include <cstddef>
#include <utility>

namespace coaccel::test {

template <class M>
mailbox<M> make(asio::io_context& ctx, std::size_t capacity)
{
    return mailbox<M>::create(ctx.get_executor(), capacity).value();
}

inline error_code put(mailbox_ref<int> box, int value)
{
    return box.try_send(std::move(value));
}

} // namespace coaccel::test

#endif
