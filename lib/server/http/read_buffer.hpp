#ifndef COACCEL_SERVER_HTTP_READ_BUFFER_HPP
#define COACCEL_SERVER_HTTP_READ_BUFFER_HPP

#include <boost/asio/buffer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

namespace coaccel::server {

/// Bytes that were read and have not been used. Unlike Beast's flat_buffer, it may be consumed while a read into the
/// prepared memory is pending: only prepare() moves bytes.
class read_buffer {
public:
    std::size_t size() const noexcept { return end_ - begin_; }
    std::size_t capacity() const noexcept { return capacity_; }
    boost::asio::const_buffer data() const noexcept { return {memory_.get() + begin_, size()}; }

    /// Room for this many bytes behind those that are there. No read may be pending.
    boost::asio::mutable_buffer prepare(std::size_t bytes)
    {
        if (begin_ == end_)
            begin_ = end_ = 0;
        if (capacity_ - end_ < bytes)
            make_room(bytes);
        return {memory_.get() + end_, bytes};
    }

    /// The first bytes of the prepared memory have been read.
    void commit(std::size_t bytes) noexcept { end_ += bytes; }
    void consume(std::size_t bytes) noexcept { begin_ += std::min(bytes, size()); }

    /// Frees the memory if there are no bytes. No read may be pending.
    void release() noexcept
    {
        if (size() > 0)
            return;
        memory_.reset();
        begin_ = end_ = capacity_ = 0;
    }

private:
    void make_room(std::size_t bytes)
    {
        const std::size_t used = size();
        if (capacity_ - used >= bytes) {
            std::memmove(memory_.get(), memory_.get() + begin_, used);
        } else {
            // At least twice as much, so that many small reads do not copy the bytes each time.
            const std::size_t larger = std::max(used + bytes, 2 * used);
            auto moved = std::make_unique_for_overwrite<char[]>(larger);
            if (used > 0)
                std::memcpy(moved.get(), memory_.get() + begin_, used);
            memory_ = std::move(moved);
            capacity_ = larger;
        }
        begin_ = 0;
        end_ = used;
    }

    std::unique_ptr<char[]> memory_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::size_t capacity_ = 0;
};

} // namespace coaccel::server

#endif
