kinds = {
    "change / largest": ("BLEU-2", "Two-sample-BLEU-2", "MS-Jaccard-2"),
    "nats a token": ("reverse LM score",),
    "FD² / largest": tuple(embedders.values()),
}
figure, axes = plt.subplots(3, 3, figsize=(7.6, 7), sharey="row")
for row, (unit, names) in zip(axes, kinds.items()):
    for name, mark in zip(names, "osD"):
        rises = {d: rise(d, name) for d in damaged}
        top = max(np.nanmax(abs(x.mean())) for y in rises.values() for x in y.values())
        for ax, (damage, y) in zip(row, rises.items()):
            scale = top if "largest" in unit else 1
            mean, sd = zip(*((x.mean(), x.std(ddof=1)) for x in y.values()))
            style = {"marker": mark, "markersize": 5, "capsize": 2, "label": name}
            ax.errorbar([*y], np.divide(mean, scale), np.divide(sd, scale), **style)
    row[0].set(ylabel=unit)
    row[-1].legend(loc="upper left", fontsize="small")
