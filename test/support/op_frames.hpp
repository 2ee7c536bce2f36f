#ifndef COACCEL_TEST_SUPPORT_OP_FRAMES_HPP
#define COACCEL_TEST_SUPPORT_OP_FRAMES_HPP

#include "worker/protocol/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// Frames that a parent process sends to its worker.
namespace test {

inline coaccel::worker::op_frame allocation(std::uint64_t count, coaccel::dtype type = coaccel::dtype::f32)
{
    coaccel::worker::op_frame f;
    f.what = coaccel::worker::op_kind::allocate;
    f.count = count;
    f.type = type;
    return f;
}

inline coaccel::worker::op_frame transfer(coaccel::worker::op_kind what, const coaccel::any_ref& ref,
                                          std::uint64_t offset, std::uint64_t count)
{
    coaccel::worker::op_frame f;
    f.what = what;
    f.ref = ref;
    f.type = ref.type;
    f.offset = offset;
    f.count = count;
    return f;
}

/// The op must outlive the frame.
template <class Op>
coaccel::worker::op_frame plain(const Op& op)
{
    coaccel::worker::op_frame f;
    f.id = coaccel::info_of<Op>().id;
    f.reply_size = coaccel::info_of<Op>().reply_size;
    f.data = std::as_bytes(std::span(&op, 1));
    return f;
}

inline std::vector<std::byte> submission(const std::vector<coaccel::worker::op_frame>& ops,
                                         coaccel::worker::injected_fault p = coaccel::worker::injected_fault::none)
{
    coaccel::worker::encoder out;
    coaccel::worker::put_submit_head(out, 77, {}, p, static_cast<std::uint8_t>(ops.size()));
    for (const auto& op : ops)
        coaccel::worker::put_op(out, op);
    return {out.record().begin(), out.record().end()};
}

} // namespace test

#endif
