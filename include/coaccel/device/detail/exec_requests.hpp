#ifndef COACCEL_DEVICE_DETAIL_EXEC_REQUESTS_HPP
#define COACCEL_DEVICE_DETAIL_EXEC_REQUESTS_HPP

#include <coaccel/core/detail/field_names.hpp>
#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/core/op_list.hpp>
#include <coaccel/device/detail/device_access.hpp>
#include <coaccel/device/seq.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace coaccel::detail {

template <class Op>
std::uint64_t host_bytes(const Op& op) noexcept
{
    if constexpr (requires { op.host_bytes(); })
        return op.host_bytes();
    else
        return 0;
}

template <class T>
struct reply_cell {
    T value{};
    void* address() noexcept { return &value; }
};

template <>
struct reply_cell<void> {
    void* address() noexcept { return nullptr; }
};

/// Keeps an object alive that the op names only by number, from the call until the end of the op.
template <class Op>
struct kept {
    explicit kept(const Op&) noexcept {}
};

template <class Op>
    requires requires(const Op& op) { op.keep(); }
struct kept<Op> {
    explicit kept(const Op& op) : object(op.keep()) {}

    std::shared_ptr<const void> object;
};

/// One op.
template <op Op>
class exec_request : public request {
public:
    static constexpr bool detachable = stands_alone<Op>;

    exec_request(const core_ptr&, const Op& o, const exec_options& how) : op_(o), kept_(o)
    {
        options = how;
        bytes = host_bytes(o);
        bound_ = {.info = &info_of<Op>(), .op = &op_, .reply = reply_.address(), .operands = addresses_.data()};
        ops = {&bound_, 1};
    }

    auto take()
    {
        if constexpr (std::is_void_v<typename Op::reply>)
            return std::tuple(ec);
        else
            return std::tuple(ec, ec ? typename Op::reply{} : reply_.value);
    }

protected:
    ~exec_request() = default;

private:
    Op op_;
    [[no_unique_address]] kept<Op> kept_;
    std::array<void*, count_operands<Op>()> addresses_;
    bound_op bound_;
    reply_cell<typename Op::reply> reply_;
};

/// Several ops, one completion.
template <op... Ops>
class seq_request : public request {
    using indices = std::index_sequence_for<Ops...>;

public:
    static constexpr bool detachable = (stands_alone<Ops> && ...);

    seq_request(const core_ptr&, const op_seq<Ops...>& s, const exec_options& how)
        : ops_(s.ops), kept_(std::apply([](const Ops&... o) { return std::tuple(kept<Ops>(o)...); }, s.ops))
    {
        options = how;
        bind(indices{});
        ops = bound_;
    }

    auto take()
    {
        if constexpr (std::tuple_size_v<seq_reply<Ops...>> == 0)
            return std::tuple(ec);
        else
            return std::tuple(ec, ec ? seq_reply<Ops...>{} : gather(indices{}));
    }

protected:
    ~seq_request() = default;

private:
    template <std::size_t... I>
    void bind(std::index_sequence<I...>)
    {
        void** addresses = addresses_.data();
        ((bound_[I] = {.info = &info_of<Ops>(),
                       .op = &std::get<I>(ops_),
                       .reply = std::get<I>(replies_).address(),
                       .operands = std::exchange(addresses, addresses + count_operands<Ops>())}),
         ...);
        bytes = (host_bytes(std::get<I>(ops_)) + ...);
    }

    template <class T>
    static auto part(reply_cell<T>& cell)
    {
        if constexpr (std::is_void_v<T>)
            return std::tuple<>();
        else
            return std::tuple<T>(cell.value);
    }

    template <std::size_t... I>
    auto gather(std::index_sequence<I...>)
    {
        return std::tuple_cat(part(std::get<I>(replies_))...);
    }

    std::tuple<Ops...> ops_;
    [[no_unique_address]] std::tuple<kept<Ops>...> kept_;
    std::tuple<reply_cell<typename Ops::reply>...> replies_;
    std::array<void*, (count_operands<Ops>() + ...)> addresses_;
    std::array<bound_op, sizeof...(Ops)> bound_;
};

/// Ops that were chosen at run time.
class list_request : public request {
public:
    static constexpr bool detachable = true;

    list_request(const core_ptr&, op_list list, const exec_options& how) : list_(std::move(op_list_access::ops(list)))
    {
        options = how;
        bound_.reserve(list_.size());
        for (listed_op& o : list_)
            bound_.push_back(o.record.bind(*o.info));
        ops = bound_;
    }

    auto take() { return std::tuple(ec, ec ? op_replies() : op_list_access::replies(std::move(list_))); }

protected:
    ~list_request() = default;

private:
    std::vector<listed_op> list_;
    std::vector<bound_op> bound_;
};

/// The caller's function as an op.
template <class Function, class... Operands>
class submit_request : public request {
public:
    submit_request(const core_ptr&, Function function, const std::tuple<Operands...>& operands,
                   const exec_options& how = {})
        : function_(std::move(function)), data_{{this, &call}, {}}
    {
        options = how;
        std::apply([this](const auto&... o) { data_.refs = {o.raw...}; }, operands);
        bound_ = {.info = &description(), .op = &data_, .operands = addresses_.data()};
        ops = {&bound_, 1};
    }

    auto take() { return std::tuple(ec ? ec : thrown_); }

protected:
    ~submit_request() = default;

private:
    struct data {
        user_op head;
        std::array<any_ref, sizeof...(Operands)> refs;
    };

    static const op_info& description()
    {
        static const op_info info = [] {
            op_info made;
            made.name = "user.submit";
            made.id = user_op_id;
            made.size = sizeof(data);
            made.lib = library::user;
            made.check = [](const void*) { return error_code{}; };
            made.work = [](const void* op) noexcept { return static_cast<const data*>(op)->head.work(); };
            std::size_t i = 0;
            ((made.operands.push_back(
                  {operand_name(i), static_cast<std::uint16_t>(offsetof(data, refs) + sizeof(any_ref) * i),
                   sizeof(any_ref), op_field::kind::operand, Operands::mode, dtype_v<typename Operands::value_type>}),
              ++i),
             ...);
            return made;
        }();
        return info;
    }

    static void call(void* object, const bound_op& op, native_stream stream) noexcept
    {
        auto* self = static_cast<submit_request*>(object);
        try {
            self->invoke(op, stream, std::index_sequence_for<Operands...>{});
        } catch (...) {
            self->thrown_ = errc::user_exception;
        }
    }

    template <class Operand>
    using pointer = std::conditional_t<Operand::mode == access::read, const typename Operand::value_type*,
                                       typename Operand::value_type*>;

    template <std::size_t... I>
    void invoke(const bound_op& op, native_stream stream, std::index_sequence<I...>)
    {
        function_(stream, std::span(static_cast<pointer<Operands>>(op.operands[I]), data_.refs[I].size)...);
    }

    Function function_;
    data data_;
    std::array<void*, sizeof...(Operands)> addresses_;
    bound_op bound_;
    error_code thrown_;
};

} // namespace coaccel::detail

#endif
