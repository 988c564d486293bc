"""scikit-learn: a forest, with joblib's threads."""

from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier


def work():
    points, classes = make_classification(200, random_state=1)
    forest = RandomForestClassifier(20, n_jobs=2, random_state=1).fit(points, classes)
    return float(forest.score(points, classes))
