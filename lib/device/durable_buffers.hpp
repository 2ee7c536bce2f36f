#ifndef COACCEL_DEVICE_DURABLE_BUFFERS_HPP
#define COACCEL_DEVICE_DURABLE_BUFFERS_HPP

#include "device/durable_trust.hpp"
#include "device/load_part.hpp"

#include <coaccel/device/detail/durable_requests.hpp>

#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace coaccel::detail {

/// Whether a ref names a durable buffer. Their slots are apart from those of a context, so that a waiting request never
/// seems to share memory with another that it does not.
inline bool is_durable(const any_ref& r) noexcept
{
    return r.device != 0 && r.generation == 0 && r.slot >> 31 != 0;
}

/// The durable buffers of a device: their memory, their buffers in the current context, and whether their content can
/// be relied on. Decides which request comes next for them; the device submits it.
///
/// A durable buffer is made by three requests: a worker allocates exportable memory, fills it with zeros and exports
/// it. From then on this process owns the memory, and each context imports it, the first one included. Callers have a
/// ref without generation; `begin` replaces it by that of the current context in the ops of a request that is about to
/// be submitted, and `end` puts it back.
///
/// A buffer with a content that this process keeps, such as that of a resident, is filled with it and exported for
/// readers only. It is never suspect, ops that write it are refused, and it can be made anew.
class COACCEL_DECL durable_buffers {
public:
    explicit durable_buffers(std::uint32_t device) noexcept : device_(device) {}

    bool empty() const noexcept { return all_.empty(); }
    /// The memory of all of them.
    std::uint64_t bytes() const noexcept;
    std::size_t suspects() const noexcept;

    /// A call that waits for a buffer. Preconditions: its size is valid.
    void add(durable_call& call);
    /// The call is no longer interested. Returns the buffer to release in the context, or none.
    any_ref remove(durable_call& call) noexcept;
    /// The call that has waited longest; null if none waits.
    durable_call* first_call() const noexcept;

    /// Whether buffers have yet to be imported in this context. Ops wait until there are none.
    bool must_import() const noexcept { return ops_wait_; }
    /// Whether a request is on its way.
    bool pending() const noexcept { return pending_ != nullptr; }
    /// Which requests may be submitted.
    enum class scope : std::uint8_t { imports, all };
    bool has_next(scope what) const noexcept
    {
        return !pending_ && (what == scope::imports ? has_imports_ : has_work_);
    }
    /// The next request; null if there is none. It belongs to the context until `finished`.
    load_part* next(scope what);

    /// What a request has changed.
    struct news {
        /// A call has its buffer, or the error.
        durable_call* call = nullptr;
        error_code error;
        /// To be released in the context.
        any_ref unused;
        /// Why a buffer could not be imported in this context.
        error_code unmapped;
    };
    news finished(load_part& part, const error_code& ec);

    /// Replaces the refs of durable buffers in the ops of a request that is about to be submitted. On an error, the
    /// request is unchanged and must not be submitted.
    ///
    /// Errors: errc::released_ref; errc::buffer_suspect; why the buffer is not in this context, which the next request
    /// tries to change.
    error_code begin(request& r);

    /// Replaces the refs of durable buffers in ops that are about to be recorded over the buffers of the context.
    ///
    /// Errors: those of `begin`; errc::context_lost if the buffer has yet to be imported.
    error_code enter_graph(std::span<const bound_op> ops);

    /// The request has ended with this error. Does nothing for a request that uses no durable buffer.
    void end(request& r, const error_code& ec) noexcept;

    /// Errors: errc::invalid_argument for a ref of something else, errc::wrong_device, errc::released_ref.
    error_code trust(const any_ref& buffer) noexcept;

    /// Its owner has released the buffer. Returns the buffer to release in the context, or none.
    any_ref release(const any_ref& buffer) noexcept;

    /// The context was lost.
    void context_lost(loss_cause cause) noexcept;
    /// The context was closed after its work had ended.
    void context_closed() noexcept;

    /// The hardware has failed: later contexts make the buffers with a content anew.
    void distrust_contents() noexcept;

    /// Frees everything.
    void clear() noexcept;

    /// Moves the contents that no buffer needs any more to `out`. Freeing them may take long.
    void take_dropped(owner_list& out);

private:
    enum class step : std::uint8_t { allocate, fill, share, import, ready };

    struct entry {
        any_ref name;
        std::shared_ptr<durable_status> status;
        /// Waits for it.
        durable_call* call = nullptr;
        /// Its owner is gone. It is dropped when the request on its way has ended.
        bool released = false;
        step at = step::allocate;
        /// Null: it can be written, and begins with zeros.
        std::shared_ptr<const std::byte> content;
        /// While it is being made: its memory in the context, and how much of the content is there.
        any_ref made;
        std::uint64_t filled = 0;
        /// Its memory was useless in this context, and was given up once.
        bool remade = false;
        std::shared_ptr<const exported_memory> memory;
        /// Its buffer in the context; of no device if there is none.
        any_ref here;
        /// The context may have mapped it: from the submission of the import on, not from its end.
        bool mapped = false;
        /// Why it is not in this context.
        error_code unmapped;
        durable_trust trust;

        std::uint64_t bytes() const noexcept { return name.size * size_of(name.type); }
        /// A buffer that a caller has counts as one to import, also if it must be made anew first.
        bool has_work(scope what) const noexcept
        {
            return !released && at != step::ready && !unmapped && (what == scope::all || at == step::import || !call);
        }
        std::uint64_t next_piece() const noexcept { return std::min(bytes() - filled, most_bytes_at_once); }
    };

    static std::uint64_t number_of(const any_ref& name) noexcept
    {
        return std::uint64_t(name.version) << 31 | (name.slot & 0x7fffffffU);
    }
    entry* find(const any_ref& name) noexcept;
    /// By its buffer in the context.
    entry* find_here(const any_ref& buffer) noexcept;
    void drop(entry& e) noexcept;
    void drop_content(entry& e) noexcept;
    void refused(entry& e, const error_code& ec, news& n);
    void leave_context(entry& e) noexcept;
    std::unique_ptr<load_part> make(entry& e) const;
    void advance(entry& e, const load_part& part, const error_code& ec, news& n);
    bool names_durable(const any_ref& r) const noexcept { return is_durable(r) && r.device == device_; }
    error_code refusal(const bound_op& o, std::size_t operand, bool overwrites);
    void note_work() noexcept;
    void note_start(request& r, entry& e, access mode) noexcept;
    static void publish(entry& e) noexcept;

    const std::uint32_t device_;
    std::uint64_t made_ = 0;
    /// By number, so that they are made in the order of the calls.
    std::map<std::uint64_t, entry> all_;
    /// The number of each buffer by its slot in the context.
    boost::unordered_flat_map<std::uint32_t, std::uint64_t> here_;
    // What `note_work` has found, because it is asked in every turn.
    bool ops_wait_ = false;
    bool has_imports_ = false;
    bool has_work_ = false;
    std::vector<std::shared_ptr<const std::byte>> dropped_;
    load_part* pending_ = nullptr;
    /// The buffer that it is for.
    std::uint64_t pending_for_ = 0;
};

} // namespace coaccel::detail

#endif
