#include "cuda/blas/blas_ops.hpp"

#include <coaccel/core/tune.hpp>

#include <bit>
#include <cstdint>
#include <string_view>
#include <utility>

namespace coaccel::cuda {
namespace {

template <class Op>
cublasComputeType_t lt_compute_type(const Op& op) noexcept
{
    using A = typename Op::source_type;
    // Products of fp8 are always computed in the same way.
    return compute_type<A>(blas::float8_element<A> ? blas::math::standard : op.math);
}

constexpr cublasLtEpilogue_t lt_epilogue(blas::activation a, bool bias) noexcept
{
    switch (a) {
    case blas::activation::relu: return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case blas::activation::gelu: return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case blas::activation::none: break;
    }
    return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

/// The greatest power of two, at most 256, that divides the address.
std::uint32_t alignment_of(const void* p) noexcept
{
    const auto address = reinterpret_cast<std::uintptr_t>(p) | 256;
    return static_cast<std::uint32_t>(address & -address);
}

/// A graph over existing buffers is prepared with copies of them, whose addresses may be better aligned.
error_code check_alignment(std::string_view op, const lt_problem& prepared, const lt_problem& captured) noexcept
{
    const bool b_first = prepared.b_first;
    const struct {
        std::string_view field;
        std::uint32_t needed, found;
    } operands[] = {{b_first ? "b" : "a", prepared.a.alignment, captured.a.alignment},
                    {b_first ? "a" : "b", prepared.b.alignment, captured.b.alignment},
                    // Before C, which may be the previous D.
                    {"d", prepared.d.alignment, captured.d.alignment},
                    {"c", prepared.c.alignment, captured.c.alignment},
                    {"bias", prepared.bias_alignment, captured.bias_alignment}};
    for (const auto& [field, needed, found] : operands)
        if (found < needed)
            return coaccel::detail::op_error(errc::unsupported_op, op,
                                             {field, " starts at a multiple of ", found,
                                              " bytes, as part of a graph it must start at a multiple of ", needed});
    return {};
}

/// `p`: null for a C that is not read.
template <class T>
lt_matrix lt_operand(const T* p, std::uint64_t rows, std::uint64_t cols, std::uint64_t ld, std::uint64_t batch,
                     std::uint64_t stride) noexcept
{
    return {data_type<T>(), rows, cols, leading(rows, cols, ld), batch_stride(batch, stride), alignment_of(p)};
}

/// How an op of cuBLASLt runs. In row-major order the library computes the transposed product, whose first factor is B.
template <class Op>
struct matmul_code {
    using A = typename Op::source_type;
    using stored = blas::detail::stored_product;

    static lt_handle& handle(backend& b, stream_state& s) { return s.resources.get<blas_handle>(b, s.native).lt(); }

    /// C, or D in its place; null if C is not read.
    static const void* addend(const Op& op, const bound_op& o) noexcept
    {
        if (const auto* c = o.data(op.c))
            return c;
        return std::same_as<typename Op::addend_type, typename Op::value_type> ? o.data(op.d) : nullptr;
    }

    static lt_arguments arguments(const Op& op, const bound_op& o) noexcept
    {
        lt_arguments with{};
        const bool b_first = op.order == blas::order::row_major;
        with.a = o.data(op.a);
        with.b = o.data(op.b);
        with.scale_a = o.data(op.scale_a);
        with.scale_b = o.data(op.scale_b);
        if (b_first) {
            std::swap(with.a, with.b);
            std::swap(with.scale_a, with.scale_b);
        }
        with.c = addend(op, o);
        with.d = o.data(op.d);
        with.bias = o.data(op.bias);
        with.scale_d = o.data(op.scale_d);
        with.amax_d = o.data(op.amax_d);
        with.alpha_bits = std::bit_cast<std::uint32_t>(op.alpha);
        with.beta_bits = std::bit_cast<std::uint32_t>(op.beta);
        if (!o.scalars.empty()) {
            with.alpha_address = factor(o, op.alpha);
            with.beta_address = factor(o, op.beta);
        }
        return with;
    }

    static lt_problem problem(const Op& op, const bound_op& o) noexcept
    {
        const auto p = stored::of(op);
        const auto& s = p.shape;
        lt_problem made{};
        const auto set_factors = [&](const auto* first, const auto* second) {
            made.a = lt_operand(first, s.a_rows(), s.a_cols(), p.ld_first, op.batch, p.stride_first);
            made.b = lt_operand(second, s.b_rows(), s.b_cols(), p.ld_second, op.batch, p.stride_second);
        };
        if (p.b_first)
            set_factors(o.data(op.b), o.data(op.a));
        else
            set_factors(o.data(op.a), o.data(op.b));
        made.d = lt_operand(o.data(op.d), s.m, s.n, op.ldd, op.batch, op.stride_d);
        const bool own_c = op.c.has_value();
        made.c = lt_operand(static_cast<const typename Op::addend_type*>(addend(op, o)), s.m, s.n,
                            own_c ? op.ldc : op.ldd, op.batch, own_c ? op.stride_c : op.stride_d);
        made.trans_a = s.trans_a == blas::transpose::no ? CUBLAS_OP_N : CUBLAS_OP_T;
        made.trans_b = s.trans_b == blas::transpose::no ? CUBLAS_OP_N : CUBLAS_OP_T;
        made.batch = static_cast<std::int32_t>(op.batch);
        made.compute = lt_compute_type(op);
        made.scale_type = data_type<typename Op::scalar_type>();
        made.pointers = o.scalars.empty() ? CUBLASLT_POINTER_MODE_HOST : CUBLASLT_POINTER_MODE_DEVICE;
        const auto* const bias = o.data(op.bias);
        made.epilogue = lt_epilogue(op.activation, bias != nullptr);
        made.bias_type = data_type<typename Op::bias_type>();
        made.bias_alignment = alignment_of(bias);
        made.scales = op.scales_rows()                                   ? lt_scales::several
                      : op.scale_a.has_value() || op.scale_b.has_value() ? lt_scales::single
                                                                         : lt_scales::none;
        made.scaled_d = op.scale_d.has_value();
        made.wants_amax = op.amax_d.has_value();
        made.b_first = p.b_first;
        return made;
    }

    /// Whether the GPU can compute it at all.
    static error_code check_gpu(const backend& b, const Op& op, const bound_op& o) noexcept
    {
        if constexpr (blas::float8_element<A>) {
            const int needed = op.scales_rows() ? 90 : 89;
            if (const int found = b.compute_capability(); found < needed)
                return coaccel::detail::op_error(
                    errc::unsupported_op, o.info->name,
                    {"the GPU has compute capability ", found / 10, ".", found % 10,
                     needed == 90 ? ", fp8 with a scale for each row needs " : ", fp8 needs ", needed / 10, ".",
                     needed % 10});
        }
        return {};
    }

    static result<readiness> prepare(backend& b, stream_state& s, bound_op& o)
    {
        const Op& op = o.as<Op>();
        if (auto ec = check_gpu(b, op, o))
            return ec;
        leave_plan(o);
        lt_plan* plan = nullptr;
        BOOST_OUTCOME_TRY(const auto ready, handle(b, s).prepare(o.info->name, problem(op, o), arguments(op, o), plan));
        o.state = plan;
        return ready;
    }

    static error_code enqueue(backend& b, stream_state& s, bound_op& o)
    {
        const Op& op = o.as<Op>();
        auto& plan = *static_cast<lt_plan*>(o.state);
        if (auto ec = check_alignment(o.info->name, plan.problem(), problem(op, o)))
            return ec;
        return handle(b, s).launch(plan, arguments(op, o));
    }

    static error_code finish(backend&, bound_op& o) noexcept
    {
        leave_plan(o);
        return {};
    }

    static void leave_plan(bound_op& o) noexcept
    {
        if (o.state)
            --static_cast<lt_plan*>(std::exchange(o.state, nullptr))->users;
    }

    // The product, and the sum of its parts.
    static std::size_t commands(const bound_op&) noexcept { return 2; }

    /// A tune op begins with its op. It is done when it is prepared.
    static result<readiness> prepare_tuning(backend& b, stream_state& s, bound_op& o)
    {
        const Op& op = o.as<Op>();
        if (auto ec = check_gpu(b, op, o))
            return ec;
        tuning made;
        BOOST_OUTCOME_TRY(const auto ready, handle(b, s).tune(o.info->name, problem(op, o), arguments(op, o), made));
        if (ready == readiness::launched && o.reply)
            *static_cast<tuning*>(o.reply) = made;
        return ready;
    }

    static error_code enqueue_tuning(backend&, stream_state&, bound_op&) { return {}; }
    static std::size_t no_commands(const bound_op&) noexcept { return 0; }
};

template <op... Ops>
void add_matmuls(op_table& table, type_list<Ops...>)
{
    (table.add<Ops>({.prepare = matmul_code<Ops>::prepare,
                     .enqueue = matmul_code<Ops>::enqueue,
                     .finish = matmul_code<Ops>::finish,
                     .commands = matmul_code<Ops>::commands}),
     ...);
    (table.add<tune<Ops>>({.prepare = matmul_code<Ops>::prepare_tuning,
                           .enqueue = matmul_code<Ops>::enqueue_tuning,
                           .commands = matmul_code<Ops>::no_commands}),
     ...);
}

} // namespace

void add_matmul(op_table& table)
{
    blas::detail::for_each_matmul_element([&table]<class T>() { add_matmuls(table, blas::matmul_for<T>{}); });
}

} // namespace coaccel::cuda
