"""Calls of PyTorch whose kernels use tensors in many ways."""

from collections.abc import Callable
from typing import Any

Call = Callable[[], Any]


def calls_of_torch(torch: Any) -> dict[str, Call]:
    """Return calls by name; each uses tensors that exist before it."""
    nn = torch.nn.functional
    torch.manual_seed(1)
    on = {"device": "cuda"}
    x, y = torch.randn(1 << 14, **on), torch.randn(1 << 14, **on)
    square, half = torch.randn(128, 128, **on), torch.randn(128, 128, **on, dtype=torch.half)
    wide, row = torch.randn(64, 4096, **on), torch.randn(4096, **on)
    whole = torch.arange(1 << 14, **on) % 97
    places = torch.arange(0, 1 << 14, 3, **on)
    images, table = torch.randn(8, 16, 32, 32, **on), torch.randn(1000, 64, **on)
    filters = torch.randn(16, 16, 3, 3, **on)
    classes = torch.arange(64, **on)
    weights = torch.nn.Parameter(torch.randn(64, 64, **on))
    optimizers = [
        torch.optim.SGD([weights], lr=0.1, momentum=0.9, foreach=False),
        torch.optim.Adam([weights], foreach=True),
        torch.optim.AdamW([weights], fused=True),
    ]
    scaler = torch.amp.GradScaler("cuda")

    def step(optimizer: Any) -> None:
        scaler.scale((weights * square[:64, :64]).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    def backward(loss: Callable[[Any], Any]) -> Call:
        def run() -> None:
            inputs = images.detach().requires_grad_()
            loss(inputs).sum().backward()

        return run

    return {
        "add": lambda: x + y,
        "add in place": lambda: x.add_(y, alpha=0.5),
        "add scalar": lambda: x + 1,
        "add to out": lambda: torch.add(x, 1, out=y),
        "add row": lambda: wide + row,
        "add column": lambda: wide + square[:64, :1],
        "add transposed": lambda: square + square.T,
        "add of two types": lambda: square + half,
        "fill": lambda: x.fill_(2),
        "fill part": lambda: x[100:200].fill_(2),
        "copy": lambda: y.copy_(x),
        "copy transposed": square.T.contiguous,
        "cast": half.float,
        "cast transposed": half.T.float,
        "where": lambda: torch.where(x > 0, x, y),
        "clamp by tensor": lambda: torch.clamp(x, y, y + 1),
        "lerp": lambda: x.lerp_(y, 0.1),
        "addcmul": lambda: x.addcmul_(y, y),
        "exp": x.exp,
        "masked fill": lambda: square.masked_fill_(square > 1, 0),
        "sum": x.sum,
        "sum of rows": lambda: wide.sum(1),
        "sum of columns": lambda: wide.sum(0),
        "large sum": lambda: torch.ones(1 << 22, **on).sum(),
        "mean to out": lambda: torch.mean(wide, 1, out=torch.empty(64, **on)),
        "max of rows": lambda: wide.max(1),
        "argmax": lambda: wide.argmax(1),
        "var": lambda: wide.var(1),
        "norm": x.norm,
        "any": (x > 1).any,
        "cat": lambda: torch.cat([x, y]),
        "cat of columns": lambda: torch.cat([square, square], 1),
        "stack": lambda: torch.stack([x, y], 1),
        "index": lambda: x[places],
        "index put": lambda: x.index_put_((places,), y[: len(places)]),
        "index select": lambda: table.index_select(0, whole[:100]),
        "index add": lambda: table.index_add_(0, whole[:100], table[:100].clone()),
        "gather": lambda: wide.gather(1, whole[:64, None]),
        "scatter": lambda: wide.scatter_(1, whole[:64, None], 1.0),
        "scatter add": lambda: x.scatter_add_(0, whole, y),
        "embedding": lambda: nn.embedding(whole[:100], table),
        "mask": lambda: x[x > 0],
        "nonzero": (x > 1).nonzero,
        "sort": x.sort,
        "topk": lambda: wide.topk(5),
        "cumsum": lambda: x.cumsum(0),
        "unique": whole.unique,
        "bincount": whole.bincount,
        "one hot": lambda: nn.one_hot(whole, 97),
        "normal": lambda: torch.randn(1000, **on),
        "normal in place": x.normal_,
        "permutation": lambda: torch.randperm(1000, **on),
        "dropout": lambda: nn.dropout(images, 0.5),
        "softmax": lambda: wide.softmax(1),
        "log softmax of short rows": lambda: table.log_softmax(1),
        "softmax of images": lambda: images.softmax(1),
        "cross entropy": lambda: nn.cross_entropy(table[:64], classes),
        "layer norm": lambda: nn.layer_norm(wide, (4096,), row, row),
        "batch norm": lambda: nn.batch_norm(images, None, None, training=True),
        "group norm": lambda: nn.group_norm(images, 4),
        "convolution": lambda: nn.conv2d(images, filters),
        "max pool": lambda: nn.max_pool2d(images, 2),
        "mean pool": lambda: nn.avg_pool2d(images, 2),
        "interpolate": lambda: nn.interpolate(images, scale_factor=2),
        "bilinear": lambda: nn.interpolate(images, scale_factor=2.0, mode="bilinear"),
        "pad": lambda: nn.pad(images, (1, 1, 1, 1)),
        "reflect": lambda: nn.pad(images, (1, 1, 1, 1), mode="reflect"),
        "roll": lambda: images.roll(1, 2),
        "flip": lambda: images.flip(2),
        "tril": square.tril,
        "product": lambda: square @ square,
        "product with bias": lambda: nn.linear(square, square, square[0]),
        "attention": lambda: nn.scaled_dot_product_attention(*[images.half()] * 3),
        "gelu": lambda: nn.gelu(images),
        "fft": lambda: torch.fft.rfft(wide),
        "backward of relu": backward(nn.relu),
        "backward of gelu": backward(nn.gelu),
        "backward of softmax": backward(lambda each: each.softmax(1) * each),
        "backward of layer norm": backward(lambda each: nn.layer_norm(each, (32,))),
        "backward of batch norm": backward(
            lambda each: nn.batch_norm(each, None, None, training=True) * each
        ),
        "backward of a convolution": backward(lambda each: nn.conv2d(each, filters)),
        "backward of a pool": backward(lambda each: nn.max_pool2d(each, 2)),
        "backward of an interpolation": backward(
            lambda each: nn.interpolate(each, scale_factor=2.0, mode="bilinear")
        ),
        "backward of an index": backward(lambda each: each.flatten()[places]),
        **{
            f"step {number}": lambda each=each: step(each) for number, each in enumerate(optimizers)
        },
    }
