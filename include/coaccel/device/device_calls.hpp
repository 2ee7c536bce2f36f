#ifndef COACCEL_DEVICE_DEVICE_CALLS_HPP
#define COACCEL_DEVICE_DEVICE_CALLS_HPP

#include <coaccel/core/as_result.hpp>
#include <coaccel/core/tune.hpp>
#include <coaccel/device/detail/buffer_requests.hpp>
#include <coaccel/device/detail/exec_requests.hpp>
#include <coaccel/device/detail/graph_requests.hpp>
#include <coaccel/device/detail/submit_arguments.hpp>
#include <coaccel/device/detail/temporary_range.hpp>
#include <coaccel/device/seq.hpp>

#include <boost/asio/async_result.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace coaccel {

/// Elements that are contiguous in host memory.
template <class Range>
concept element_range = std::ranges::contiguous_range<Range> && element<std::ranges::range_value_t<Range>>;

/// The completion signature of an upload of a range.
template <element_range Range>
using upload_signature = void(error_code, buffer<std::ranges::range_value_t<Range>>);

class graph;

/// The initial content of new memory.
enum class memory_init : std::uint8_t { none, zero };

/// The functions that start ops. `device` has them with default options, `device_with` with the caller's options.
///
/// Exceptions: initiating calls throw std::bad_alloc; nothing has been started then. See `device`.
template <class Self>
class device_calls {
public:
    /// Runs one op.
    ///
    /// Completion signature: void(error_code), or void(error_code, Op::reply).
    /// Completes when: the op has ended on the device.
    /// Order: ops on the same elements of a buffer run in the order in which one caller started them, awaited or not.
    /// Lifetimes: the op is copied; buffers it names may be released at any time.
    /// Errors: those of an invalid op or ref (fault::caller), and those of the backend.
    template <op Op, asio::completion_token_for<exec_signature<Op>> Token = default_token>
    auto async_exec(const Op& op, Token&& token = {}) const
    {
        return asio::async_initiate<Token, exec_signature<Op>>(
            detail::initiate_request<detail::exec_request<Op>>{core()}, token, op, options());
    }

    /// Measures the algorithms that a library has for an op, with its operands, and keeps the fastest one for later ops
    /// of this device with the same fields and sizes, and in a file for devices that are made later. The operands keep
    /// their contents. It takes as long as some hundred ops; other ops of its lane wait. Plans use what is known when
    /// they are loaded.
    ///
    /// Completion signature: void(error_code, tuning).
    /// Errors: those of async_exec.
    template <tunable_op Op, asio::completion_token_for<void(error_code, tuning)> Token = default_token>
    auto async_tune(const Op& op, Token&& token = {}) const
    {
        return async_exec(tune<Op>{op}, static_cast<Token&&>(token));
    }

    /// Runs several ops in order, with one completion.
    ///
    /// Completion signature: void(error_code), or void(error_code, std::tuple<replies...>).
    template <op... Ops, asio::completion_token_for<seq_signature<Ops...>> Token = default_token>
    auto async_exec(const op_seq<Ops...>& ops, Token&& token = {}) const
    {
        return asio::async_initiate<Token, seq_signature<Ops...>>(
            detail::initiate_request<detail::seq_request<Ops...>>{core()}, token, ops, options());
    }

    /// Runs ops that were chosen at run time, one after another. They are checked together: when one is refused, none
    /// is started.
    ///
    /// Completion signature: void(error_code, op_replies).
    /// Errors: errc::invalid_argument for an empty list, and those of the ops.
    template <asio::completion_token_for<void(error_code, op_replies)> Token = default_token>
    auto async_exec(op_list ops, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, op_replies)>(
            detail::initiate_request<detail::list_request>{core()}, token, std::move(ops), options());
    }

    /// Runs a graph that this device has recorded.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: all its ops have ended on the device.
    /// Order: as for an op that reads and writes what the ops of the graph read and write.
    /// Errors: errc::stale_ref after the context of its buffers was lost or replaced; errc::wrong_device for a graph of
    /// another device; errc::invalid_argument for an empty graph and for one that has been released; those of the ops.
    template <std::same_as<graph> Graph, asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_exec(const Graph& recorded, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_request<detail::graph_request>{core()},
                                                             token, detail::graph_access::handle(recorded), options());
    }

    /// Runs the caller's function as an op: `async_submit(in(a), out(b), function)`.
    ///
    /// The function is called as `function(native_stream, span<const A>, span<B>)`, with one span of device memory for
    /// each operand. On a GPU it enqueues work on the stream and returns; on the host it does the work itself, on a
    /// thread of the backend. It is ordered only with ops that use the same elements; functions without common operands
    /// may run at the same time. It counts as one command of the stream however many kernels it launches. It should
    /// launch fewer than about 300: a driver whose launch queue is full blocks the device.
    ///
    /// Completion signature: void(error_code).
    /// Errors: errc::user_exception if the function threw.
    /// Exceptions: the initiating call also throws what copying or moving the function throws; nothing has been started
    /// then.
    template <class... Args>
    auto async_submit(Args&&... args) const
    {
        return detail::split_submit(core(), options(), static_cast<Args&&>(args)...);
    }

    /// Allocates memory for `count` elements.
    ///
    /// Completion signature: void(error_code, buffer<T>).
    /// Errors: errc::invalid_argument for zero elements, errc::size_overflow, errc::out_of_memory.
    template <element T, asio::completion_token_for<void(error_code, buffer<T>)> Token = default_token>
    auto async_alloc(std::size_t count, memory_init content, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, buffer<T>)>(
            detail::initiate_request<detail::alloc_request<T>>{core()}, token, count, content == memory_init::zero,
            options());
    }

    /// \copydoc async_alloc
    template <element T, asio::completion_token_for<void(error_code, buffer<T>)> Token = default_token>
    auto async_alloc(std::size_t count, Token&& token = {}) const
    {
        return async_alloc<T>(count, memory_init::none, static_cast<Token&&>(token));
    }

    /// Allocates memory that the host can access too.
    ///
    /// Completion signature: void(error_code, managed_buffer<T>).
    /// Errors: those of async_alloc.
    template <element T, asio::completion_token_for<void(error_code, managed_buffer<T>)> Token = default_token>
    auto async_alloc_managed(std::size_t count, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, managed_buffer<T>)>(
            detail::initiate_request<detail::managed_request<T>>{core()}, token, count, options());
    }

    /// Makes a buffer over existing memory: on a GPU over device or managed memory of other CUDA code in the process,
    /// as cudaMalloc returns it, on the host backend over any memory. The memory is neither copied nor freed.
    ///
    /// Ops on the buffer do not wait for work of the other code, nor that code for ops: see interop::wait_event and
    /// interop::record_event. Adopt memory once, and use `subspan` for its parts: between two buffers over the same
    /// memory there is no order.
    ///
    /// Completion signature: void(error_code, buffer<T>).
    /// Lifetimes: `owner` is kept until the buffer was released and no op uses the memory, or until the context has
    /// ended. It is destroyed on a thread of the library, where its destructor may block, or with host_mode::inline_ on
    /// the executor. If work that hangs was abandoned, it is never destroyed. With an empty `owner`, the memory must
    /// stay valid until the buffer was released and the ops that use it have completed. After the loss of a context
    /// the buffer is stale like any other; the memory can be adopted again.
    /// Errors: errc::invalid_argument for a null pointer, for zero elements, for a pointer that is not a multiple of
    /// sizeof(T), and on a GPU for host memory and for pointers that the driver does not know; errc::size_overflow;
    /// errc::wrong_device for memory of another GPU; errc::out_of_bounds if the allocation ends before `count`
    /// elements; errc::not_isolatable on a device in a worker process.
    template <element T, asio::completion_token_for<void(error_code, buffer<T>)> Token = default_token>
    auto async_adopt(T* pointer, std::size_t count, std::shared_ptr<void> owner, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, buffer<T>)>(
            detail::initiate_request<detail::adopt_request<T>>{core()}, token, pointer, count, std::move(owner),
            options());
    }

    /// Allocates memory and copies `data` into it.
    ///
    /// Completion signature: void(error_code, buffer<T>).
    /// Lifetimes: `data` must stay valid until completion. A temporary lives until the end of its full expression: long
    /// enough for `co_await`, but not for a callback or a future, with which it does not compile.
    template <element T, asio::completion_token_for<void(error_code, buffer<T>)> Token = default_token>
    auto async_upload(std::span<const T> data, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, buffer<T>)>(
            detail::initiate_request<detail::upload_request<T>>{core()}, token, data, options());
    }

    /// \copydoc async_upload
    template <element_range Range, asio::completion_token_for<upload_signature<Range>> Token = default_token>
    auto async_upload(const Range& data, Token&& token = {}) const
    {
        using value = std::ranges::range_value_t<Range>;
        return async_upload<value>(std::span<const value>(data), static_cast<Token&&>(token));
    }

    /// The same for a temporary range. It does not compile with a token that starts the upload at once, because the
    /// elements would be destroyed before they are copied.
    template <element_range Range, asio::completion_token_for<upload_signature<Range>> Token = default_token>
        requires(!std::ranges::borrowed_range<Range>)
    auto async_upload(Range&& data, Token&& token = {}) const
    {
        using value = std::ranges::range_value_t<Range>;
        const std::span<const value> elements(data);
        using started = decltype(async_upload<value>(elements, static_cast<Token&&>(token)));
        static_assert(starts_when_awaited<started>, COACCEL_TEMPORARY_RANGE);
        return async_upload<value>(elements, static_cast<Token&&>(token));
    }

    /// Copies device memory into a new vector.
    ///
    /// Completion signature: void(error_code, std::vector<T>).
    template <element T, asio::completion_token_for<void(error_code, std::vector<T>)> Token = default_token>
    auto async_download(ref<T> source, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, std::vector<T>)>(
            detail::initiate_request<detail::download_request<T>>{core()}, token, source, options());
    }

    /// \copydoc async_download
    template <element T, asio::completion_token_for<void(error_code, std::vector<T>)> Token = default_token>
    auto async_download(const buffer<T>& source, Token&& token = {}) const
    {
        return async_download(source.ref(), static_cast<Token&&>(token));
    }

    /// Copies `data` to device memory of the same length.
    ///
    /// Completion signature: void(error_code).
    /// Lifetimes: `data` must stay valid until completion.
    /// Errors: errc::length_mismatch.
    template <element T, asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_write(ref<T> target, std::span<const std::type_identity_t<T>> data, Token&& token = {}) const
    {
        return async_exec(detail::write_op<T>{.dst = target, .src = data.data(), .count = data.size()},
                          static_cast<Token&&>(token));
    }

    /// \copydoc async_write
    template <element T, asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_write(const buffer<T>& target, std::span<const std::type_identity_t<T>> data, Token&& token = {}) const
    {
        return async_write(target.ref(), data, static_cast<Token&&>(token));
    }

    /// The same for a temporary range; see async_upload.
    template <class Target, element_range Range, asio::completion_token_for<void(error_code)> Token = default_token>
        requires(!std::ranges::borrowed_range<Range>)
    auto async_write(const Target& target, Range&& data, Token&& token = {}) const
    {
        const std::span<const std::ranges::range_value_t<Range>> elements(data);
        using started = decltype(async_write(target, elements, static_cast<Token&&>(token)));
        static_assert(starts_when_awaited<started>, COACCEL_TEMPORARY_RANGE);
        return async_write(target, elements, static_cast<Token&&>(token));
    }

    /// Copies device memory to `data`, which must have the same length.
    ///
    /// Completion signature: void(error_code).
    /// Lifetimes: `data` must stay valid until completion.
    /// Errors: errc::length_mismatch.
    template <element T, asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_read(ref<T> source, std::span<std::type_identity_t<T>> data, Token&& token = {}) const
    {
        return async_exec(detail::read_op<T>{.src = source, .dst = data.data(), .count = data.size()},
                          static_cast<Token&&>(token));
    }

    /// \copydoc async_read
    template <element T, asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_read(const buffer<T>& source, std::span<std::type_identity_t<T>> data, Token&& token = {}) const
    {
        return async_read(source.ref(), data, static_cast<Token&&>(token));
    }

private:
    detail::core_ptr core() const noexcept { return static_cast<const Self&>(*this).core(); }
    exec_options options() const noexcept { return static_cast<const Self&>(*this).options(); }
};

} // namespace coaccel

#endif
